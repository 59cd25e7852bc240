"""Turns, flows and verified stores, as several rooms play them."""

import fcntl
from pathlib import Path
from typing import Any

import pytest
from commands.world import World, replied

from uwf_git.commands.drive_thread import Driven, DriveRequest, Watcher, drive_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.turn import Played, Player, ThreadResult, Turn
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.threads.history import walk_history

# The files of a turn under way, without an agent.


def begin_turn(world: World, thread: ThreadId, *, role: str = "writer", begun: bool = True) -> Oid:
    """Write the run files of a turn of *role* that has begun; return the commit it began after."""
    base = world.snapshot(thread).turn_start
    run_dir = Path(world.store.local_path("run", thread, base))
    run_dir.mkdir(parents=True)
    Path(f"{run_dir}.turn").write_text(f'{role} 3QZ82VBH2MY12 nobody\n{{"command": "nobody"}}\n')
    if begun:
        (run_dir / "pid").write_text("1\n")
    return base


# Counts what a command reads of a store: objects, and locks that it takes.


class Counted:
    """What was read since the last ``clear``."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []
        self.locks = 0

    def clear(self) -> None:
        """Begin anew."""
        self.objects.clear()
        self.locks = 0


def count_reads(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count from now on; everything else stays as it is."""
    counted = Counted()
    get_raw, flock = DurableObjects.get_raw, fcntl.flock

    def counted_get(objects: DurableObjects, name: bytes) -> tuple[int, bytes]:
        counted.objects.append(name)
        return get_raw(objects, name)  # type: ignore[arg-type]  # any bytes

    def counted_flock(descriptor: int, operation: int) -> None:
        counted.locks += 1
        flock(descriptor, operation)

    monkeypatch.setattr(DurableObjects, "get_raw", counted_get)
    monkeypatch.setattr(fcntl, "flock", counted_flock)
    return counted


# A flow whose plans are carried out and verified, and players of it.

PLANS = """\
name: plans
description: Carry out each plan, and have it verified.
initialState: {tries: 3, plans: [{file: 000.md}, {file: 001.md}]}
root:
  type: loop
  over: state.plans
  as: plan
  nodes:
    - type: agent
      agentId: executor
      input: "Carry out ${state.plan.file}."
      retries: ${state.tries - 1}
      verifiedBy: {agentId: verifier, when: meta.verified === true}
"""
GOOD = {"verified": True}
BAD = {"verified": False, "issues": ["no tests", "no words"], "suggestion": "write both"}


def in_order(*results: Any) -> Player:
    """Play what is told, in order: a meta, or a player."""
    left = list(results)

    def play(turn: Turn) -> Played:
        told = left.pop(0)
        return told(turn) if callable(told) else replied(told)

    return play


def take(world: World, thread: ThreadId, *results: Any) -> list[str]:
    """Take a step for each of *results*, and return the roles that were asked."""
    asked: list[str] = []
    play = in_order(*results)

    def noted(turn: Turn) -> Played:
        asked.append(turn.role)
        return play(turn)

    for _ in results:
        try:
            world.step(thread, noted)
        except TurnFailed:
            continue
    return asked


# Run threads of flows in tests: scripted agents, drives, and which agent took which step.


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
