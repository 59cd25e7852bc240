from typing import Any

import pytest
from commands.flows import Split, split_checks
from commands.world import World, replied

from uwf_git.commands.turn.joining import find_join_problem
from uwf_git.engine.flow_state import MAX_STATE_BYTES


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


def problem_after(split: Split, **metas: Any) -> str | None:
    """End the branches with a meta for each role; return the code of why they cannot be joined."""
    world = split.world
    for child in split.children:
        while world.snapshot(child).record.status != "completed":
            world.step(child, lambda turn: replied(metas.get(turn.role, {})))
    found = find_join_problem(world.store, split.tip)
    return None if found is None else found.code


def test_branches_that_can_be_joined_have_no_problem(split: Split) -> None:
    assert problem_after(split, reviewer={"a": 1}, tester={"b": 1}) is None


def test_branches_at_work_and_a_thread_without_any_have_no_problem(split: Split) -> None:
    store = split.world.store

    assert find_join_problem(store, split.tip) is None
    assert find_join_problem(store, split.world.snapshot(split.children[0])) is None


def test_branches_that_disagree_cannot_be_joined(split: Split) -> None:
    assert problem_after(split, reviewer={"v": 1}, tester={"v": 2}) == "merge-conflict"


def test_branches_that_say_too_much_together_cannot_be_joined(split: Split) -> None:
    much = "x" * (MAX_STATE_BYTES // 4)

    assert problem_after(split, reviewer={"a": much}, tester={"b": much}) == "state-too-large"
