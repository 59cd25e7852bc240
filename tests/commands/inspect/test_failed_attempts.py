"""How often a step failed before it succeeded, as its thread's commits tell."""

import pytest
from commands.world import World, fails

from uwf_git.commands.inspect.read import render_thread
from uwf_git.commands.inspect.step_view import count_failed_by_role
from uwf_git.commands.inspect.story import count_failed
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.store.threads.history import walk_history


def step_after(world: World, thread: ThreadId, failures: int) -> NodeHash:
    """Take a step that first fails some times; return its node."""
    for _ in range(failures):
        with pytest.raises(TurnFailed):
            world.step(thread, fails())
    return world.step(thread).head


def counts(world: World, thread: ThreadId) -> list[tuple[NodeHash, int]]:
    """Return the steps with their failed attempts, newest first: also those taken back."""
    history = walk_history(world.store, world.snapshot(thread).commit.oid, through_forks=True)
    return [(step.record.node, count) for step, count in count_failed(history)]


def test_attempts_of_roles_are_counted_up_to_a_length(world: World) -> None:
    thread = world.begun()
    step_after(world, thread, 2)
    step_after(world, thread, 1)
    tip = world.snapshot(thread).commit.oid

    assert count_failed_by_role(world.store, tip, most=7) == {"writer": 2, "checker": 1}
    assert count_failed_by_role(world.store, tip, most=6) == {}


def test_attempts_are_those_since_the_step_before(world: World) -> None:
    thread = world.begun()
    first = step_after(world, thread, 2)
    second = step_after(world, thread, 1)

    assert counts(world, thread) == [(second, 1), (first, 2)]
    text = "".join(render_thread(world.store, thread))
    assert text.count("after 2 failed attempts") == text.count("after 1 failed attempt ") == 1
    # Those before the oldest of the last events are counted too, though they are not shown.
    text = "".join(render_thread(world.store, thread, last=1))
    assert text.count("after 1 failed attempt ") == 1
