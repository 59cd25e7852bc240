"""Branches are held while a thread above them does not let them go on."""

import pytest
from commands.flows import Split, split_checks
from commands.world import World

from uwf_git.commands.turn.branches import BranchHeld, check_ancestors


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


def test_a_branch_that_was_joined_goes_on_no_more(split: Split) -> None:
    world, first = split.world, split.children[0]
    begun = world.snapshot(first)
    split.finish_branches()
    split.step()

    with pytest.raises(BranchHeld, match="goes on without it"):
        check_ancestors(world.store, begun)
