"""Agents that are typed for a drive or a step reach the branches whose roles they name."""

from commands.flows import plays, split_checks
from commands.step.test_played_roles import INNER, MIDDLE, OUTER
from commands.world import World, replied
from refusing import refuses

from uwf_git.commands.drive.drive_thread import DriveRequest, Watcher, drive_thread
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.bind_roles import check_roles
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId


def begun(world: World) -> ThreadId:
    for source in (INNER, MIDDLE):
        world.put(source)
    return world.begun(OUTER)


def test_the_roles_are_those_of_all_workflows_inside(world: World) -> None:
    snapshot = world.snapshot(begun(world))

    known = check_roles(snapshot, "digger", ())

    assert known == {"asker", "builder", "planner", "digger", "closer"}
    assert check_roles(snapshot, None, ()) == frozenset()
    for until, agents in (("nobody", ()), (None, ("nobody=x",))):
        with refuses("no-such-role", match="has no role nobody") as caught:
            check_roles(snapshot, until, agents)
        assert set(caught.value.facts["roles"]) == known


def test_a_drive_plays_roles_of_inner_workflows_by_typed_agents(world: World) -> None:
    commands: dict[str, str] = {}

    def play(turn: Turn) -> Played:
        commands[turn.role] = turn.agent.payload["command"]
        return replied({"depth": 2} if turn.role == "digger" else {"good": True})

    choice = Choice(("other", "asker=first", "digger=deep"))
    watcher = Watcher(*[lambda *_args: None] * 3)
    request = DriveRequest(StepRequest(begun(world), play, choice))

    driven = drive_thread(world.store, world.caller, request, watcher=watcher)

    assert driven.stopped == "end"
    assert commands == {"asker": "first", "planner": "other", "digger": "deep", "closer": "other"}


def test_a_step_of_branches_gives_each_its_own_agent(world: World) -> None:
    at = split_checks(world)
    commands: dict[str, str] = {}

    def play(turn: Turn) -> Played:
        commands[turn.role] = turn.agent.payload["command"]
        return plays(turn)

    stepped = world.step(at.thread, play, agents=("reviewer=mine",))

    assert [each.error for each in stepped.branches] == [None, None]
    assert commands == {"reviewer": "mine", "tester": "nobody"}
    with refuses("no-such-role"):
        world.step(at.thread, play, agents=("nobody=mine",))
