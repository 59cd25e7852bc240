"""Nodes of a flow as those who watch know them."""

from commands.step.test_record_turn import LOOP
from commands.world import World

from uwf_git.commands.split.node import find_node
from uwf_git.engine.events import Node


def test_node_has_its_label_its_name_and_its_pass(world: World) -> None:
    thread = world.begun(LOOP.replace("agentId: coder", "agentId: coder, id: write, name: Writes"))
    snapshot = world.snapshot(thread)

    assert find_node(snapshot, "0.3/0") == Node("write", "Writes", 3)
    assert find_node(snapshot, "0.1/1") == Node("reviewer", "reviewer", 1)
    assert find_node(snapshot, "0") == Node("loop", "loop", 1)


def test_graph_and_place_that_is_gone_have_no_node(world: World) -> None:
    flow, graph = world.begun(LOOP), world.begun()

    assert find_node(world.snapshot(flow), "0.1/7") is None
    assert find_node(world.snapshot(flow), "not a place") is None
    assert find_node(world.snapshot(flow), None) is None
    assert find_node(world.snapshot(graph), "writer") is None
