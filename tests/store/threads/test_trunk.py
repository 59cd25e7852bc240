"""The threads around a branch."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flow_runs import branches, script
from commands.world import World, make_world

from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import read_root, read_trunk
from uwf_git.store.threads.snapshot import Snapshot

NESTED = """\
name: nested
root:
  type: parallel
  nodes:
    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
    - {type: agent, agentId: three}
"""


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """An empty store, and a caller in a directory beside it."""
    return make_world(tmp_path, clock, thread_ids)


@pytest.fixture
def family(world: World) -> list[Snapshot]:
    """Return a thread that has split, its first branch, and the first one of that."""
    thread = world.begun(NESTED)
    for _ in range(3):
        world.step(thread, script())
    outer = branches(world, thread)[0]
    return [world.snapshot(each) for each in (thread, outer, branches(world, outer)[0])]


def test_a_branch_leads_to_its_thread_and_to_the_outermost_one(
    world: World, family: list[Snapshot]
) -> None:
    root, outer, inner = family

    assert [read_trunk(world.store, each) for each in family] == [None, root, outer]
    assert [read_root(world.store, each) for each in family] == [root] * 3
    assert read_root(world.store, root) is root
    assert inner.get_trunk() == outer.record.thread


def test_what_is_not_here_is_not_around_it(world: World, family: list[Snapshot]) -> None:
    root, outer, inner = family
    thread = root.record.thread
    world.store.refs.delete(f"refs/threads/{thread}", seen=root.commit.oid)

    assert read_trunk(world.store, outer) is None
    assert read_root(world.store, inner) == outer
