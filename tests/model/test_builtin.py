import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model import builtin
from uwf_git.model.builtin import (
    BUILTIN,
    BUILTIN_NODES,
    META,
    META_NODE,
    TEXT,
    collect_references,
    find_unfollowed,
    plan_references,
    reference,
    walk_closure,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.model.schema_check import check_schema, check_value

REFERENCES = Path(__file__).parent / "made_up" / "references.json"


# Existing threads refer to these names: a schema that changes gets another name, and the old one
# must stay.
NAMES = {
    "META": "607F3QK6JGWCT",
    "TEXT": "7T9THEK9TEVCY",
    "BYTES": "A8HWRT5ANPHEK",
    "ROLE": "394TF908N1YXY",
    "MODERATOR": "BCEDV3J2NEDZV",
    "WORKFLOW": "CW88EZYEDTXG5",
    "AGENT_CONFIG": "3XEJQ361TS7WF",
    "START": "AZS68F65RFR68",
    "STEP": "AVJGDY8EZNJHJ",
    "ATTEMPT": "3QJHZ0TBHJ5VG",
    "TRACE": "A7DPBAHX8CK19",
    "SIGNAL": "4SFSX2E9TQJ9B",
    "AGENT_EXEC_CONTEXT": "09XJBB8N39DVK",
    "FLOW": "6KJSXTD1NR6YV",
}

FULL: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "made_up" / "payloads.json").read_text()
)
"""A payload of each schema with every field; each reference is to another node."""
NEEDED = {
    "ROLE": "name description",
    "MODERATOR": "graph",
    "WORKFLOW": "name description roles",
    "AGENT_CONFIG": "command",
    "START": "workflow prompt agentBinding",
    "STEP": "role meta content agent prev",
    "ATTEMPT": "role agent attempt error",
    "TRACE": "events",
    "SIGNAL": "action",
    "AGENT_EXEC_CONTEXT": "env",
    "FLOW": "nodes",
}


def schema(name: str) -> Any:
    return BUILTIN[getattr(builtin, name)].payload


def test_a_built_in_schema_keeps_its_name() -> None:
    for name, hash_ in NAMES.items():
        assert getattr(builtin, name) == hash_


def test_the_other_type_of_a_flow_keeps_its_name_and_is_in_no_other_thread() -> None:
    assert builtin.RESULT_FLOW == "1D2NWT19FDSWJ"
    assert builtin.RESULT_FLOW not in BUILTIN
    node = builtin.TYPES[builtin.RESULT_FLOW]
    assert node.payload == {**schema("FLOW"), "title": "Flow with results"}


def test_the_table_has_all_of_them_and_the_meta_schema_is_first() -> None:
    assert list(BUILTIN) == list(NAMES.values())
    assert BUILTIN_NODES[0] is META_NODE


def test_the_meta_schema_is_true_of_itself_and_of_every_other() -> None:
    assert META_NODE.is_self_typed
    for node in BUILTIN_NODES:
        assert node.type == META
        assert check_value(META_NODE.payload, node.payload) == []


@pytest.mark.parametrize("node", BUILTIN_NODES, ids=lambda node: str(node.payload["title"]))
def test_a_built_in_schema_is_a_json_schema_written_at_no_time(node: Node) -> None:
    assert check_schema(node.payload) == []
    assert node.timestamp == 0


@pytest.mark.parametrize("name", FULL)
def test_each_field_that_is_needed_is_missed(name: str) -> None:
    for field in NEEDED[name].split():
        payload = {key: value for key, value in FULL[name].items() if key != field}
        assert check_value(schema(name), payload) != []


@pytest.mark.parametrize("name", FULL)
def test_unknown_field_is_refused(name: str) -> None:
    assert check_value(schema(name), {**FULL[name], "unknown": 1}) != []


A, B = NodeHash("AAAAAAAAAAAAA"), NodeHash("BBBBBBBBBBBBB")
REF = {"format": "cas_ref"}


def test_references_are_where_the_schema_says(golden: Callable[[str, str], None]) -> None:
    answers = {
        "collect_references": collect_references,
        "find_unfollowed": lambda schema: [each.message for each in find_unfollowed(schema)],
        "plan_references": plan_references,
    }
    golden("model/references.txt", tell_cases(REFERENCES, answers))


def test_two_schemas_that_lead_to_each_other_cost_no_more_at_every_level() -> None:
    both = {"allOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/other"}]}
    schema = {
        "$defs": {
            "one": {"properties": {"a": {**both}, "v": REF}},
            "other": {"properties": {"a": {**both}}},
        },
        **both,
    }
    payload: Any = {"v": A}
    for _level in range(100):
        payload = {"a": payload}
    before = time.process_time()
    assert collect_references(schema, payload) == [A]
    assert time.process_time() - before < 2


@given(
    st.recursive(
        st.none() | st.text() | st.sampled_from([A, B, META]),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=15,
    )
)
def test_a_schema_that_says_it_of_every_place_finds_every_name(payload: Any) -> None:
    everywhere = {**REF, "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}
    assert collect_references(everywhere, payload) == list(dict.fromkeys(names_in(payload)))


def names_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for item in value.values() for name in names_in(item)]
    if isinstance(value, list):
        return [name for item in value for name in names_in(item)]
    return [value] if value in (A, B, META) else []


PAIR = build_node(META, {"properties": {"left": REF, "right": REF}}, timestamp=0)
LEAF = build_node(TEXT, "leaf", timestamp=0)
INNER = build_node(PAIR.hash, {"left": reference(LEAF.hash), "right": LEAF.hash}, timestamp=0)
OUTER = build_node(PAIR.hash, {"left": INNER.hash, "right": reference(LEAF.hash)}, timestamp=0)
NODES = {**BUILTIN, **{node.hash: node for node in (PAIR, LEAF, INNER, OUTER)}}


def test_the_closure_is_everything_once_and_nearest_first() -> None:
    found = list(walk_closure([OUTER.hash], NODES.__getitem__))
    assert [node.hash for node in found] == [
        OUTER.hash, PAIR.hash, INNER.hash, LEAF.hash, META, TEXT,
    ]  # fmt: skip


A_CLOSURE, B_CLOSURE, C_CLOSURE = "8FWKR3TN5V1QA", "7BQST3VW9F2MA", "4KNM2PXR3B1QW"

names = st.sampled_from(["a", "b", "$ref"])
targets = st.sampled_from([A_CLOSURE, B_CLOSURE, C_CLOSURE, "no name"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | targets | st.builds(lambda name: {"$ref": name}, targets),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
leaves = st.sampled_from([{"format": "cas_ref"}, {}, True, {"type": "string"}, None, 5])
schemas: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "if": inner,
            "then": inner,
            "format": st.just("cas_ref"),
        },
    ),
    max_leaves=8,
)


@given(schema=schemas, payload=values)
def test_plan_gives_what_the_search_gives(schema: Any, payload: Any) -> None:
    plan = plan_references(schema)

    assert plan is not None
    assert plan(payload) == collect_references(schema, payload)


@pytest.mark.parametrize("node", BUILTIN_NODES, ids=lambda node: node.payload["title"])
def test_every_builtin_schema_has_a_plan(node: Node) -> None:
    assert plan_references(node.payload) is not None


def test_schema_that_doubles_at_every_level_has_no_plan() -> None:
    schema: Any = {"format": "cas_ref"}
    for _level in range(40):
        schema = {"properties": {"a": schema}, "anyOf": [{"properties": {"a": schema}}]}

    assert plan_references(schema) is None


def test_schema_that_is_too_deep_has_no_plan() -> None:
    schema: Any = {"format": "cas_ref"}
    for _level in range(2500):
        schema = {"items": schema}

    assert plan_references(schema) is None
