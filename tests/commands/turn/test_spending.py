"""What a thread and its branches spent together."""

from commands.flow_runs import branches
from commands.world import World, fails, says

from uwf_git.commands.turn.limits import Spending, read_spending
from uwf_git.model.names import ThreadId

FLOW = """\
name: tree
description: Branches of branches.
config: {maxSteps: 50}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: first}
    - type: parallel
      nodes:
        - {type: agent, agentId: one}
        - type: parallel
          nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
"""


def spent(world: World, thread: ThreadId) -> Spending:
    snapshot = world.snapshot(thread)
    return read_spending(world.store, snapshot, snapshot.get_present())


def test_each_step_and_try_counts_once_wherever_it_was(world: World) -> None:
    thread = world.begun(FLOW)
    world.step(thread, says({}, usage={"inputTokens": 10}))
    for _ in range(3):
        world.step(thread, fails(kind="lost"))
    one, inner = branches(world, thread)
    two, three = branches(world, inner)

    world.step(two, says({}, usage={"inputTokens": 5}))

    for each in (thread, one, inner, two, three):
        found = spent(world, each)
        assert found.thread == thread
        assert (found.present.depth, found.present.usage) == (2, {"inputTokens": 15})
        # Two steps of 1.5 s, and the lost tries of 0.5 s: two of one, one of two and three each.
        assert found.present.execution_ms == 2 * 1500 + 4 * 500
