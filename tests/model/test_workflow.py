from typing import Any

import pytest
from refusing import refuses
from workflow_file import SOUND, read

from uwf_git.model.builtin import (
    AGENT_CONFIG,
    BUILTIN,
    FLOW,
    META,
    MODERATOR,
    ROLE,
    TEXT,
    WORKFLOW,
    reference,
    walk_closure,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.model.schema_check import check_value
from uwf_git.model.workflow import (
    NotAWorkflow,
    build_workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)

AGENTS = """
defaultAgent: uwf-mock
agentOverrides:
  writer:
    command: uwf-claude
    timeout: 60
initialState: {round: 1}
config: {maxSteps: 9, eventEmit: false}
"""


def built(text: str = SOUND) -> tuple[Node, dict[NodeHash, Node]]:
    node, closure = build_workflow(read(text), timestamp=7)
    return node, {each.hash: each for each in closure}


def test_the_closure_is_all_that_the_workflow_reaches_and_the_built_in_schemas() -> None:
    node, closure = built()
    nodes = {**closure, node.hash: node}
    reached = {each.hash for each in walk_closure([node.hash], nodes.__getitem__)}
    assert set(nodes) == reached | set(BUILTIN)
    assert not reached <= set(BUILTIN)


def test_every_node_keeps_the_schema_of_its_type() -> None:
    node, closure = built(SOUND + AGENTS)
    for each in (node, *closure.values()):
        assert check_value(closure[each.type].payload, each.payload) == []


def test_a_definition_reads_back() -> None:
    definition = read(SOUND + AGENTS)
    node, closure = build_workflow(definition, timestamp=7)
    nodes = {each.hash: each for each in closure}
    workflow = parse_workflow(node)
    assert (workflow.name, workflow.description) == (definition.name, definition.description)
    assert workflow.default_agent == {"command": "uwf-mock"}
    assert workflow.agent_overrides == {"writer": {"command": "uwf-claude", "timeout": 60}}
    assert workflow.initial_state == {"round": 1}
    assert workflow.config == {"maxSteps": 9, "eventEmit": False}
    assert parse_workflow(built(SOUND)[0]).config == {}
    assert parse_graph(nodes[workflow.get_moderator()]) == definition.graph
    for name, role_definition in definition.roles.items():
        role = parse_role(nodes[workflow.roles[name]])
        assert role.name == name
        assert role.system_prompt == role_definition.system_prompt
        assert nodes[role.output_schema].payload == role_definition.output_schema


def test_value_that_was_not_given_is_not_stored() -> None:
    node, _closure = built()
    assert list(node.payload) == ["name", "description", "roles", "moderator"]


def test_the_same_definition_has_the_same_name_at_any_time() -> None:
    one, other = (build_workflow(read(SOUND), timestamp=time)[0] for time in (1, 2))
    assert one.hash == other.hash
    assert (one.timestamp, other.timestamp) == (1, 2)


def ref() -> dict[str, str]:
    return reference(TEXT)


WHOLE: dict[str, Any] = {"name": "w", "description": "", "roles": {"a": ref()}, "moderator": ref()}


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {**WHOLE, "moderator": None},
        {**WHOLE, "roles": None},
        {**WHOLE, "roles": {"a": None}},
        {**WHOLE, "roles": {"a": {}}},
        {"name": "w", "roles": {}, "moderator": ref()},
        {**WHOLE, "agentOverrides": []},
    ],
)
def test_invalid_workflow_is_reported_by_its_name(payload: Any) -> None:
    node = build_node(WORKFLOW, payload, timestamp=0)
    with pytest.raises(NotAWorkflow) as caught:
        parse_workflow(node)
    assert node.hash in caught.value.message
    assert caught.value.exit_status == 5


@pytest.mark.parametrize("payload", [None, [], {}, {"outputSchema": "text"}])
def test_invalid_role_is_reported_by_its_name(payload: Any) -> None:
    node = build_node(ROLE, payload, timestamp=0)
    with pytest.raises(NotAWorkflow, match=node.hash):
        parse_role(node)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"graph": None},
        {"graph": [1]},
        {"graph": [{"from": "a"}]},
        {"graph": [{"from": "a", "transitions": [{"to": "b"}]}]},
    ],
)
def test_invalid_moderator_is_reported_by_its_name(payload: Any) -> None:
    node = build_node(MODERATOR, payload, timestamp=0)
    with pytest.raises(NotAWorkflow, match=node.hash):
        parse_graph(node)


def test_a_node_of_another_type_is_none_of_them() -> None:
    for parse in (parse_workflow, parse_role, parse_graph):
        for type_hash in (META, AGENT_CONFIG):
            with pytest.raises(NotAWorkflow):
                parse(build_node(type_hash, {**WHOLE, "outputSchema": ref()}, timestamp=0))


def test_a_flow_has_no_graph() -> None:
    node, _closure = build_workflow(read("name: x\nroot: {type: agent, agentId: a}\n"), timestamp=0)
    workflow = parse_workflow(node)
    assert (workflow.moderator, workflow.flow is not None) == (None, True)
    with refuses("flow-cannot-run", match="workflow x is made of containers"):
        workflow.get_moderator()


@pytest.mark.parametrize("payload", [{"nodes": {"1": {"type": "agent"}}}, {"nodes": {}}])
def test_a_flow_that_cannot_be_read_is_no_workflow(payload: dict[str, Any]) -> None:
    with pytest.raises(NotAWorkflow, match="is not a flow"):
        parse_flow_node(build_node(FLOW, payload, timestamp=0))
    with pytest.raises(NotAWorkflow, match="is not a flow"):
        parse_flow_node(build_node(TEXT, "words", timestamp=0))


def test_a_workflow_has_a_graph_or_a_flow() -> None:
    for moves in ({}, {"moderator": reference(TEXT), "flow": reference(TEXT)}):
        payload = {"name": "w", "description": "", "roles": {}, **moves}
        with pytest.raises(NotAWorkflow, match="with a moderator or a flow"):
            parse_workflow(build_node(WORKFLOW, payload, timestamp=0))
