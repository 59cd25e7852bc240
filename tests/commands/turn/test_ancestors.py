"""Branches are held while a thread above them does not let them go on."""

import pytest
from commands.flows import Split, plays, split_checks
from commands.world import World

from uwf_git.commands.control.steer import resume_thread
from uwf_git.commands.control.stop import kill_thread, pause_thread
from uwf_git.commands.turn.branches import BranchHeld, check_ancestors


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


def test_a_branch_is_held_while_its_thread_is_paused(split: Split) -> None:
    world, first = split.world, split.children[0]
    pause_thread(world.store, world.caller, split.thread)

    with pytest.raises(BranchHeld, match=f"{first} is a branch of {split.thread}, which is paused"):
        world.step(first, plays)

    resume_thread(world.store, world.caller, split.thread)
    assert world.step(first, plays).depth == 1


def test_a_branch_of_a_thread_that_was_killed_goes_on_no_more(split: Split) -> None:
    world, first = split.world, split.children[0]
    snapshot = world.snapshot(first)
    kill_thread(world.store, world.caller, split.thread, reason="enough")

    with pytest.raises(BranchHeld, match="which is killed"):
        check_ancestors(world.store, snapshot)


def test_a_branch_that_was_joined_goes_on_no_more(split: Split) -> None:
    world, first = split.world, split.children[0]
    begun = world.snapshot(first)
    split.finish_branches()
    split.step()

    with pytest.raises(BranchHeld, match="goes on without it"):
        check_ancestors(world.store, begun)
