import pytest
from commands.world import DEMO, World, fails

from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.control.patch import patch_thread
from uwf_git.commands.control.pause import pause_thread
from uwf_git.commands.step.step_thread import TurnFailed
from uwf_git.commands.turn.next_move import Steered, find_next_move, find_steered

ME = "C O Mitter <committer@example.com>"
STUCK = DEMO.replace("- to: checker", "- {to: checker, condition: meta.text = 'x'}")


def test_end_is_nobodys_turn(world: World) -> None:
    thread = world.begun()
    for _ in range(2):
        world.step(thread)

    move = find_next_move(world.snapshot(thread))

    assert (move.role, move.turn_of, move.problem) == ("$END", None, None)


def test_failed_role_is_next_again(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails())

    assert find_next_move(world.snapshot(thread)).role == "writer"


def test_role_that_cannot_be_decided_is_told_with_the_way_on(world: World) -> None:
    thread = world.begun(STUCK)
    world.step(thread)

    move = find_next_move(world.snapshot(thread))

    assert move.role is None
    assert move.problem is not None
    assert f"`uwf thread amend {thread} --workflow FILE`" in str(move.problem.hint)


def test_who_paused_is_found_below_what_came_later(world: World) -> None:
    thread = world.begun()
    assert find_steered(world.store, world.snapshot(thread)) is None

    pause_thread(world.store, world.caller, thread, reason="why")
    patch_thread(world.store, world.caller, thread, {"a": 1}, reason="another reason")

    assert find_steered(world.store, world.snapshot(thread)) == Steered(ME, "why")


def test_who_killed_is_told(world: World) -> None:
    thread = world.begun()
    kill_thread(world.store, world.caller, thread, reason="of no use")

    assert find_steered(world.store, world.snapshot(thread)) == Steered(ME, "of no use")
