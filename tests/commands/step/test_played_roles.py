"""Roles of graphs that whole workflows play."""

import pytest
from commands.flow_runs import branches, drive, log, script
from commands.world import World

from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.names import ThreadId

INNER = """\
name: inner
description: A graph.
roles:
  digger:
    description: Digs.
    outputSchema: {type: object, properties: {depth: {type: number}}, required: [depth]}
moderator:
  - {from: $START, to: digger}
  - {from: digger, to: digger, condition: meta.depth < 2}
  - {from: digger, to: $END}
"""

MIDDLE = """\
name: middle
description: A flow with a graph inside.
initialState: {own: true}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner, output: plan}
    - {type: workflow, use: inner, input: "dig ${state.plan}", output: hole}
    - {type: agent, agentId: closer}
"""

OUTER = """\
name: outer
description: A graph with a flow inside.
roles:
  asker: {description: Asks.}
  builder:
    description: Builds.
    workflow: middle
    outputSchema: {type: object, properties: {good: {type: boolean}}, required: [good]}
moderator:
  - {from: $START, to: asker}
  - {from: asker, to: builder}
  - {from: builder, to: builder, condition: meta.good = false and iteration < 3}
  - {from: builder, to: $END}
"""


def begun(world: World) -> ThreadId:
    for source in (INNER, MIDDLE):
        world.put(source)
    return world.begun(OUTER)


def test_a_graph_runs_inside_a_flow_inside_a_graph(world: World) -> None:
    thread = begun(world)
    play = script(
        planner="deep",
        digger=[{"depth": 1}, {"depth": 2}, {"depth": 3}],
        closer=[{"good": False}, {"good": True}],
    )

    driven, done = drive(world, thread, play)

    inner = "workflow: 1 completed"
    assert driven.stopped == "end"
    assert done == [
        "asker",
        *["planner", "digger", "digger", inner, "closer", "builder: 1 completed"],
        *["planner", "digger", inner, "closer", "builder: 1 completed"],
    ]
    assert log(world, thread)[1:] == [
        "step ready",
        "split builder split",
        "join builder ready",
        "split builder split",
        "join builder ready",
        "end completed",
    ]
    snapshot = world.snapshot(thread)
    head = snapshot.get_head_node().payload
    assert (head["role"], head["meta"]) == ("builder", {"good": True})
    assert snapshot.get_present().visits["builder"] == 2
    middle = branches(world, thread)[0]
    assert world.snapshot(middle).get_present().state["hole"] == {"depth": 3}
    assert world.snapshot(middle).get_present().state["own"] is True
    assert world.snapshot(branches(world, middle)[0]).get_start().payload["prompt"] == "dig deep"
    world.assert_sound(thread)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("workflow: middle", "workflow: nowhere", 7, "nowhere"),
        ("workflow: middle", "workflow: outer", 7, "cannot contain itself"),
        ("workflow: middle", "workflow: middle\n    systemPrompt: x", 8, "is for an agent"),
        ("workflow: middle", "workflow: [1]", 7, "must be text"),
    ],
)
def test_a_workflow_that_cannot_play_is_told_with_its_line(
    world: World, old: str, new: str, line: int, told: str
) -> None:
    for source in (INNER, MIDDLE):
        world.put(source)

    with pytest.raises(InvalidWorkflow) as caught:
        world.put(OUTER.replace(old, new))

    problems = [(each.line, each.message) for each in caught.value.problems]
    assert any(where == line and told in message for where, message in problems), problems


def test_a_workflow_does_not_contain_itself_through_another(world: World) -> None:
    begun(world)

    with pytest.raises(InvalidWorkflow, match="cannot contain itself: outer contains it"):
        world.put(INNER.replace("    description: Digs.", "    workflow: outer"))


def test_the_role_that_is_being_played_cannot_be_replaced(world: World) -> None:
    thread = begun(world)
    world.step(thread, script())
    world.step(thread, script())
    addition = b"roles: {builder: {description: Builds alone.}}"

    with pytest.raises(WrongStatus, match="builder"):
        append_to_thread(world.store, world.caller, AppendRequest(thread, addition))
    addition = b"roles: {asker: {description: Asks again.}}"
    append_to_thread(world.store, world.caller, AppendRequest(thread, addition))
