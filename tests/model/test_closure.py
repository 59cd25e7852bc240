import pytest

from uwf_git.model.builtin import (
    BUILTIN,
    META,
    META_NODE,
    TEXT,
    direct_references,
    reference,
    walk_closure,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node

REF = {"format": "cas_ref"}
PAIR = build_node(META, {"properties": {"left": REF, "right": REF}}, timestamp=0)
LEAF = build_node(TEXT, "leaf", timestamp=0)
INNER = build_node(PAIR.hash, {"left": reference(LEAF.hash), "right": LEAF.hash}, timestamp=0)
OUTER = build_node(PAIR.hash, {"left": INNER.hash, "right": reference(LEAF.hash)}, timestamp=0)
NODES = {**BUILTIN, **{node.hash: node for node in (PAIR, LEAF, INNER, OUTER)}}


def test_a_node_points_at_its_type_and_at_what_its_payload_names() -> None:
    assert direct_references(OUTER, NODES.__getitem__) == [PAIR.hash, INNER.hash, LEAF.hash]


def test_a_meta_schema_points_at_nothing() -> None:
    assert direct_references(META_NODE, NODES.__getitem__) == []


def test_a_type_that_is_also_named_is_reported_once() -> None:
    node = build_node(PAIR.hash, {"left": PAIR.hash}, timestamp=0)
    assert direct_references(node, NODES.__getitem__) == [PAIR.hash]


def test_the_closure_is_everything_once_and_nearest_first() -> None:
    found = list(walk_closure([OUTER.hash], NODES.__getitem__))
    assert [node.hash for node in found] == [
        OUTER.hash, PAIR.hash, INNER.hash, LEAF.hash, META, TEXT,
    ]  # fmt: skip


def test_several_roots_are_walked_together() -> None:
    found = [node.hash for node in walk_closure([LEAF.hash, LEAF.hash, META], NODES.__getitem__)]
    assert found == [LEAF.hash, META, TEXT]


def test_each_node_is_asked_for_once() -> None:
    asked: list[NodeHash] = []

    def get_node(name: NodeHash) -> Node:
        asked.append(name)
        return NODES[name]

    assert len(list(walk_closure([OUTER.hash], get_node))) == len(asked)


def test_what_a_missing_node_raises_goes_to_the_caller() -> None:
    without = {name: node for name, node in NODES.items() if name != LEAF.hash}
    with pytest.raises(KeyError):
        list(walk_closure([OUTER.hash], without.__getitem__))
