"""Run threads of flows in tests: scripted agents, drives, and which agent took which step."""

from typing import Any

from commands.world import World, replied

from uwf_git.commands.drive_thread import Driven, DriveRequest, Watcher, drive_thread
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.turn import Played, Player, ThreadResult, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import walk_history


def script(**answers: Any) -> Player:
    """Return a player that says for each role its answer, or the next of a list of answers.

    A dash in a role's name is an underscore here. A text is content without a meta.
    """

    def play(turn: Turn) -> Played:
        answer = answers.get(turn.role.replace("-", "_"), {})
        if isinstance(answer, list):
            answer = answer.pop(0)
        return replied({}, answer) if isinstance(answer, str) else replied(answer)

    return play


def drive(
    world: World, thread: ThreadId, play: Player, *, jobs: int = 1, **options: Any
) -> tuple[Driven, list[str]]:
    """Drive a thread until it stops.

    Return why, and what was done in it and in its branches: the role of a step, and what a join
    came to. A split is not listed.
    """
    roles: list[str] = []

    def on_step(stepped: ThreadResult) -> None:
        if stepped.role is not None or stepped.status == "ready":
            roles.append(stepped.role or stepped.said)

    def ignore(*_args: object) -> None:
        return

    request = DriveRequest(StepRequest(thread, play, jobs=jobs), **options)
    watcher = Watcher(on_step, ignore, ignore)
    return drive_thread(world.store, world.caller, request, watcher=watcher), roles


def log(world: World, thread: ThreadId) -> list[str]:
    """List the commits of a thread, oldest first: event, status, and the place if it has one.

    A branch's begin with its start.
    """
    told: list[str] = []
    for each in walk_history(world.store, world.tip(thread)):
        record = each.record
        at = "" if record.at is None else f" {record.at}"
        told.append(f"{record.event}{at} {record.status}")
        if record.event == "start":
            break
    return told[::-1]


def branches(world: World, thread: ThreadId) -> list[ThreadId]:
    """List the branches that a thread has, or had at its newest split."""
    for each in walk_history(world.store, world.tip(thread)):
        found = each.get_present().split
        if found is not None:
            return [child.thread for child in found.children]
    return []
