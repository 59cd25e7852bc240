"""Frozen values are read as any dict and list, and changed by nothing."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, read

from uwf_git.model.builtin import (
    AGENT_CONFIG,
    BUILTIN,
    FLOW,
    META,
    MODERATOR,
    RESULT_FLOW,
    TEXT,
    WORKFLOW,
    reference,
    walk_closure,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node, canonical
from uwf_git.model.schema_check import check_value
from uwf_git.model.workflow import (
    END,
    START,
    FrozenDict,
    FrozenList,
    NotAWorkflow,
    build_workflow,
    freeze,
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


REF = reference(TEXT)
WHOLE: dict[str, Any] = {"name": "w", "description": "", "roles": {"a": REF}, "moderator": REF}


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
        {"name": "w", "roles": {}, "moderator": REF},
        {**WHOLE, "agentOverrides": []},
    ],
)
def test_invalid_workflow_is_reported_by_its_name(payload: Any) -> None:
    node = build_node(WORKFLOW, payload, timestamp=0)
    with pytest.raises(NotAWorkflow) as caught:
        parse_workflow(node)
    assert node.hash in caught.value.message
    assert caught.value.exit_status == 5


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
                parse(build_node(type_hash, {**WHOLE, "outputSchema": REF}, timestamp=0))


def test_a_flow_has_no_graph() -> None:
    node, _closure = build_workflow(read("name: x\nroot: {type: agent, agentId: a}\n"), timestamp=0)
    workflow = parse_workflow(node)
    assert (workflow.moderator, workflow.flow is not None) == (None, True)


@pytest.mark.parametrize("kind", [FLOW, RESULT_FLOW])
def test_a_flow_that_needs_results_has_the_type_that_says_so(kind: NodeHash) -> None:
    verified = ", verifiedBy: {agentId: b, when: meta}" if kind == RESULT_FLOW else ""
    node, closure = built(f"name: x\nroot: {{type: agent, agentId: a{verified}}}\n")
    flow = closure[parse_workflow(node).flow or node.hash]
    assert flow.type == kind
    assert parse_flow_node(flow).has_results is (kind == RESULT_FLOW)
    assert set(closure) == {
        each.hash for each in walk_closure([node.hash], {**closure, node.hash: node}.__getitem__)
    } - {node.hash} | set(BUILTIN)


@pytest.mark.parametrize("payload", [{"nodes": {"1": {"type": "agent"}}}, {"nodes": {}}])
def test_a_flow_that_cannot_be_read_is_no_workflow(payload: dict[str, Any]) -> None:
    with pytest.raises(NotAWorkflow, match="is not a flow"):
        parse_flow_node(build_node(FLOW, payload, timestamp=0))
    with pytest.raises(NotAWorkflow, match="is not a flow"):
        parse_flow_node(build_node(TEXT, "words", timestamp=0))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

_CHANGES: dict[str, Callable[[Any], object]] = {
    "dict item": lambda value: value.__setitem__("a", 1),
    "dict del": lambda value: value.__delitem__("list"),
    "dict |=": lambda value: value.__ior__({}),
    "dict clear": lambda value: value.clear(),
    "dict pop": lambda value: value.pop("list"),
    "dict popitem": lambda value: value.popitem(),
    "dict setdefault": lambda value: value.setdefault("a", 1),
    "dict update": lambda value: value.update(a=1),
    "list item": lambda value: value["list"].__setitem__(0, 1),
    "list del": lambda value: value["list"].__delitem__(0),
    "list +=": lambda value: value["list"].__iadd__([1]),
    "list *=": lambda value: value["list"].__imul__(2),
    "list append": lambda value: value["list"].append(1),
    "list clear": lambda value: value["list"].clear(),
    "list extend": lambda value: value["list"].extend([1]),
    "list insert": lambda value: value["list"].insert(0, 1),
    "list pop": lambda value: value["list"].pop(),
    "list remove": lambda value: value["list"].remove({"b": 2}),
    "list reverse": lambda value: value["list"].reverse(),
    "list sort": lambda value: value["list"].sort(),
    "deep": lambda value: value["list"][0].update(b=3),
}


@given(_JSON)
def test_frozen_value_reads_as_the_value(value: Any) -> None:
    frozen = freeze(value)

    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert canonical(frozen) == canonical(value)
    assert freeze(frozen) == value
    for made in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert made == value
    assert type(copy.deepcopy(frozen)) is type(value)


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_frozen_value_refuses_every_change(change: Callable[[Any], object]) -> None:
    value = freeze({"list": [{"b": 2}]})

    with pytest.raises(TypeError, match="is shared and cannot be changed"):
        change(value)
    assert value == {"list": [{"b": 2}]}


def test_every_method_that_changes_is_refused() -> None:
    """A method that a later Python adds would be found here."""
    for frozen, plain in ((FrozenDict, dict), (FrozenList, list)):
        own = {name for name in vars(plain) if vars(frozen).get(name) is not None}
        reading = {name for name in vars(plain) if name not in own and not name.startswith("__")}
        assert reading <= {"copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}


def test_copy_can_be_changed() -> None:
    value = freeze({"list": [{"b": 2}]})
    for made in (copy.copy(value), copy.deepcopy(value), value.copy(), {**value}, value | {}):
        made["new"] = 1
    copied = copy.copy(value["list"])
    copied.append(1)

    assert value == {"list": [{"b": 2}]}


def test_the_two_ends_are_spelled_as_every_store_has_them() -> None:
    """They stand in moderator nodes, so another spelling would be another node."""
    assert (START, END) == ("$START", "$END")
