"""Branches below a thread, the deepest and those around them."""

from commands.flow_runs import branches, script
from commands.world import World

from uwf_git.commands.family import walk_descendants
from uwf_git.commands.step.step_thread import list_leaves, list_trunks
from uwf_git.model.names import ThreadId

FLOW = """\
name: tree
description: Branches of branches.
root:
  type: parallel
  nodes:
    - {type: agent, agentId: one}
    - type: parallel
      nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
"""


def names(world: World, thread: ThreadId) -> list[str]:
    return [head.thread for head, _ in walk_descendants(world.store, world.snapshot(thread))]


def test_parents_come_first_and_trunks_last(world: World) -> None:
    thread = world.begun(FLOW)
    world.step(thread, script())
    world.step(thread, script())
    list(list_leaves(world.store, world.snapshot(thread)))

    one, inner = branches(world, thread)
    two, three = branches(world, inner)
    assert names(world, thread) == [one, inner, two, three]
    assert list(list_trunks(world.store, world.snapshot(thread))) == [inner, thread]
    assert list(list_leaves(world.store, world.snapshot(thread))) == [one, two, three]
