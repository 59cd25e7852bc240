"""How many steps each place of a flow took."""

import pytest
from commands.world import World, says

from uwf_git.commands.control.change_rules import poke_thread
from uwf_git.commands.inspect.graph import find_steps_at, picture_thread
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.model.names import ThreadId

FLOW = """\
name: outer
root:
  type: sequential
  nodes:
    - {type: agent, agentId: writer}
    - type: loop
      maxIterations: 2
      nodes:
        - type: parallel
          merge: {"*": last}
          nodes:
            - {type: agent, agentId: writer}
            - {type: agent, agentId: reader}
    - {type: workflow, use: inner}
    - {type: agent, agentId: writer}
"""
INNER = """\
name: inner
root:
  type: sequential
  nodes:
    - {type: agent, agentId: writer}
    - {type: agent, agentId: writer}
"""


def counts(world: World, thread: ThreadId) -> dict[str, int]:
    return dict(find_steps_at(world.store, world.snapshot(thread).commit.oid, most=200).by_place)


def finish(world: World, thread: ThreadId) -> None:
    while world.step(thread, says({})).status != "completed":
        pass


@pytest.fixture
def thread(world: World) -> ThreadId:
    world.put(INNER)
    return world.begun(FLOW)


def test_steps_are_counted_by_place_and_those_of_branches_too(
    world: World, thread: ThreadId
) -> None:
    world.step(thread, says({}))
    assert counts(world, thread) == {"0/0": 1}

    finish(world, thread)

    assert counts(world, thread) == {"0/0": 1, "0/1/0/0": 2, "0/1/0/1": 2, "0/3": 1}


def test_a_branch_counts_from_the_beginning_of_its_flow(world: World, thread: ThreadId) -> None:
    children: list[ThreadId] = []
    while world.step(thread, says({})).status != "completed":
        split = world.snapshot(thread).get_present().split
        children += [] if split is None else [each.thread for each in split.children]
    first, _, second, _, inner = dict.fromkeys(children)

    assert counts(world, first) == {"0/0": 1, "0/1/0/0": 1}
    assert counts(world, second) == {"0/0": 1, "0/1/0/0": 2, "0/1/0/1": 1}
    assert counts(world, inner) == {"0/0": 1, "0/1": 1}


def test_a_step_that_is_redone_counts_once(world: World, thread: ThreadId) -> None:
    world.step(thread, says({}))
    poke_thread(world.store, world.caller, thread, hint="again")
    assert counts(world, thread) == {}

    world.step(thread, says({"other": 1}))
    assert counts(world, thread) == {"0/0": 1}


def test_a_fork_has_the_steps_before_it(world: World, thread: ThreadId) -> None:
    world.step(thread, says({}))
    forked = fork_thread(world.store, world.caller, ForkRequest(thread), thread=world.new_id())

    assert counts(world, forked.thread) == {"0/0": 1}


def test_nothing_is_counted_of_a_long_thread(world: World, thread: ThreadId) -> None:
    finish(world, thread)
    tip = world.snapshot(thread).commit.oid
    commits = next(n for n in range(200) if find_steps_at(world.store, tip, most=n).by_place)

    assert find_steps_at(world.store, tip, most=commits - 1).by_place == {}


def test_the_picture_counts_a_role_at_each_of_its_places(world: World, thread: ThreadId) -> None:
    finish(world, thread)

    subject = picture_thread(world.store, thread)

    assert subject.thread is not None
    badges = {place: mark.badge for place, mark in subject.thread.marks.items()}
    assert badges == {
        "0/0": "✓ 1",
        "0/1/0/0": "✓ 2",
        "0/1/0/1": "✓ 2",
        "0/3": "✓ 1",
        "$END": "✓ completed",
    }
