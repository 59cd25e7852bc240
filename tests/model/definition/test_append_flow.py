"""Nodes that are appended to a flow; `commands/control/test_append_nodes.py` runs them."""

from typing import Any

import pytest
from flow_trees import Tree, as_flow
from refusing import refuses

from uwf_git.model.definition.definition import InvalidWorkflow, Surroundings
from uwf_git.model.definition.source import Target, find_target, read_flow_addition
from uwf_git.model.yaml_reader import parse_yaml

AGENT: Tree = {"type": "agent", "agentId": "a"}
TREE: Tree = {
    "type": "sequential",
    "id": "all",
    "nodes": [
        {"type": "loop", "name": "twice", "nodes": [AGENT]},
        {"type": "loop", "name": "twice", "nodes": [AGENT]},
        {"type": "map", "over": "x", "as": "file", "name": "files", "nodes": [AGENT]},
    ],
}
TARGET = Target("flow", {"a": "${state.file}.json"}, as_flow(TREE))


def read(source: str, to: str | None = None) -> Any:
    return read_flow_addition(
        parse_yaml(source.encode()),
        to=find_target(TARGET, to),
        check_schema=lambda _schema: [],
        surroundings=Surroundings("flow"),
    )


def test_the_table_keeps_what_it_has() -> None:
    addition = read("[{type: agent, agentId: a}, {type: loop, nodes: [{type: agent, agentId: b}]}]")

    old = [place for place in addition.flow.nodes if place.split("/")[0] == "0"]
    assert old == list(TARGET.flow.nodes)
    assert list(addition.flow.nodes)[len(old) :] == ["1", "2", "2/0"]
    assert (addition.added, list(addition.roles)) == (("a", "loop"), ["b"])


@pytest.mark.parametrize(("to", "place"), [("all", "0/3"), ("files", "0/2/1")])
def test_a_container_is_named_by_its_id_or_name(to: str, place: str) -> None:
    addition = read("[{type: agent, agentId: a}]", to)

    assert addition.flow.nodes[place] == AGENT


@pytest.mark.parametrize(
    ("named", "told"), [("twice", "is the name of 2 containers"), ("a", "is no id or name")]
)
def test_what_is_no_one_container_is_told(named: str, told: str) -> None:
    with refuses("no-such-container", match=told) as caught:
        find_target(TARGET, named)
    assert caught.value.facts["containers"] == ["all", "twice", "twice", "files"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "[{type: parallel, nodes: [{type: agent, agentId: a}, {type: agent, agentId: a}]}]",
            "at once",
        ),
        ("{roles: {a: {outputFile: x}}, nodes: [{type: agent, agentId: b}]}", "each item"),
    ],
)
def test_branches_have_an_output_file_each(source: str, told: str) -> None:
    with pytest.raises(InvalidWorkflow, match=told):
        read(source)
