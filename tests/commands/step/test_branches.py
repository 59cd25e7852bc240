"""Branches as steps see them: held by their thread, joined when all have ended."""

import threading
from pathlib import Path

import pytest
from commands.drive.test_drive_branches import wide
from commands.flows import CHECKS, Split, plays, split_checks, split_files
from commands.world import World, fails
from store.loose import lose

from uwf_git.commands.control.change_rules import poke_thread
from uwf_git.commands.control.steer import pause_thread, resume_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.step_thread import settle_branches
from uwf_git.commands.turn.limits import LimitReached
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.store.gc.packing import MOST_PACKS

TOLERANT = CHECKS.replace(
    "name: checks\n      nodes", "name: checks\n      onError: continue\n      nodes"
)


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


def test_branches_of_a_paused_thread_are_not_given_up(world: World) -> None:
    split = split_checks(world, TOLERANT)
    with pytest.raises(Exception, match="exit status 7"):
        world.step(split.children[0], fails())
    pause_thread(world.store, world.caller, split.thread)

    assert not settle_branches(world.store, world.caller, split.thread)

    resume_thread(world.store, world.caller, split.thread)
    assert settle_branches(world.store, world.caller, split.thread)


def test_a_step_gives_up_the_branches_that_failed_in_it(world: World) -> None:
    split = split_checks(world, TOLERANT)

    stepped = world.step(split.thread, fails())

    assert stepped.status == "ready"
    given_up = show_thread(world.store, split.thread)["givenUp"]
    assert [each["error"] for each in given_up] == ["exit status 7", "exit status 7"]
    # They are those of the newest step that counts.
    world.step(split.thread)
    assert "givenUp" not in show_thread(world.store, split.thread)
    poke_thread(world.store, world.caller, split.thread)
    assert show_thread(world.store, split.thread)["givenUp"] == given_up
    lose(world.store, world.snapshot(given_up[0]["thread"]).commit.oid)
    assert "givenUp" not in show_thread(world.store, split.thread)


def test_a_step_of_branches_at_once_keeps_the_most_steps(world: World) -> None:
    thread = world.begun(wide(4, passes=1) + "config: {maxSteps: 2}\n")
    world.step(thread, plays)
    two = threading.Barrier(2)

    def play(turn: Turn) -> Played:
        two.wait(30)
        return plays(turn)

    stepped = world.step(thread, play)

    assert [each.result is not None for each in stepped.branches] == [True, True, False, False]
    assert all(isinstance(each.error, LimitReached) for each in stepped.branches[2:])


def test_a_step_of_many_branches_leaves_few_packs(world: World) -> None:
    at = split_files(world, 40)

    at.step()

    packs = Path(world.store.path, "objects", "pack").glob("*.pack")
    assert len(list(packs)) <= MOST_PACKS + 1
