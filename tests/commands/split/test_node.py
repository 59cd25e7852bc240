"""Nodes of a flow as those who watch know them."""

from commands.step.test_record_turn import LOOP
from commands.world import World

from uwf_git.commands.split import find_node
from uwf_git.engine.events import Node


def test_node_has_its_label_its_name_and_its_pass(world: World) -> None:
    thread = world.begun(LOOP.replace("agentId: coder", "agentId: coder, id: write, name: Writes"))
    snapshot = world.snapshot(thread)

    assert find_node(snapshot, "0.3/0") == Node("write", "Writes", 3)
    assert find_node(snapshot, "0.1/1") == Node("reviewer", "reviewer", 1)
    assert find_node(snapshot, "0") == Node("loop", "loop", 1)
