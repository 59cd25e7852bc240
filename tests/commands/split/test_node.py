"""Nodes of a flow as those who watch know them."""

import pytest
from commands.step.test_flows import LOOP, script
from commands.world import World, fails

from uwf_git.commands.split.node import NodeInFlow, find_node, list_new_passes
from uwf_git.commands.step.record_turn import TurnFailed


def passes(world: World, thread: str, at: str) -> list[tuple[str, int, int]]:
    snapshot = world.snapshot(thread)  # type: ignore[arg-type]  # ids are texts
    found = list_new_passes(snapshot, snapshot.get_present(), at)
    return [(each.node.label, each.node.turn, each.level) for each in found]


def test_node_has_its_label_its_name_and_its_pass(world: World) -> None:
    thread = world.begun(LOOP.replace("agentId: coder", "agentId: coder, id: write, name: Writes"))
    snapshot = world.snapshot(thread)

    assert find_node(snapshot, "0.3/0") == NodeInFlow("write", "Writes", 3)
    assert find_node(snapshot, "0.1/1") == NodeInFlow("reviewer", "reviewer", 1)
    assert find_node(snapshot, "0") == NodeInFlow("loop", "loop", 1)


def test_graph_and_place_that_is_gone_have_no_node(world: World) -> None:
    flow, graph = world.begun(LOOP), world.begun()

    assert find_node(world.snapshot(flow), "0.1/7") is None
    assert find_node(world.snapshot(flow), "not a place") is None
    assert find_node(world.snapshot(flow), None) is None
    assert find_node(world.snapshot(graph), "writer") is None


def test_pass_is_new_at_its_first_turn_alone(world: World) -> None:
    thread = world.begun(LOOP)
    assert passes(world, thread, "0.1/0") == [("loop", 1, 1)]

    world.step(thread, script())
    assert passes(world, thread, "0.1/1") == []
    world.step(thread, script())
    assert passes(world, thread, "0.2/0") == [("loop", 2, 1)]


def test_pass_is_not_new_where_its_turn_was_tried(world: World) -> None:
    thread = world.begun(LOOP)

    with pytest.raises(TurnFailed):
        world.step(thread, fails())

    assert passes(world, thread, "0.1/0") == []
