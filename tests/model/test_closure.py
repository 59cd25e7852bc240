from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import (
    BUILTIN,
    BUILTIN_NODES,
    META,
    TEXT,
    collect_references,
    plan_references,
    reference,
    walk_closure,
)
from uwf_git.model.node import Node, build_node

REF = {"format": "cas_ref"}
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


A, B, C = "8FWKR3TN5V1QA", "7BQST3VW9F2MA", "4KNM2PXR3B1QW"

names = st.sampled_from(["a", "b", "$ref"])
targets = st.sampled_from([A, B, C, "no name"])
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


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/x"},
        {"patternProperties": {"^a": {"format": "cas_ref"}}},
        {"properties": {"a": {"prefixItems": [{"format": "cas_ref"}]}}},
        {"items": [{"format": "cas_ref"}]},
        {"anyOf": [{"unevaluatedProperties": {"format": "cas_ref"}}]},
    ],
)
def test_schema_that_depends_on_the_payload_has_no_plan(schema: Any) -> None:
    assert plan_references(schema) is None


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
