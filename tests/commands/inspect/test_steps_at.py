"""How many steps each place of a flow took."""

import pytest
from commands.world import World, says

from uwf_git.commands.inspect.graph import find_steps_at
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
    return dict(find_steps_at(world.store, world.tip(thread), most=200).by_place)


@pytest.fixture
def thread(world: World) -> ThreadId:
    world.put(INNER)
    return world.begun(FLOW)


def test_a_step_that_is_redone_counts_once(world: World, thread: ThreadId) -> None:
    world.step(thread, says({}))
    world.poke(thread, hint="again")
    assert counts(world, thread) == {}

    world.step(thread, says({"other": 1}))
    assert counts(world, thread) == {"0/0": 1}


def test_nothing_is_counted_of_a_long_thread(world: World, thread: ThreadId) -> None:
    world.finish(thread, says({}))
    tip = world.tip(thread)
    commits = next(n for n in range(200) if find_steps_at(world.store, tip, most=n).by_place)

    assert find_steps_at(world.store, tip, most=commits - 1).by_place == {}
