import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import META, TEXT
from uwf_git.model.node import (
    NotCanonical,
    build_node,
    build_self_typed_node,
    content_hash,
    self_typed_hash,
    typed_hash,
)


def test_a_node_carries_the_name_of_its_content() -> None:
    node = build_node(TEXT, "hello", timestamp=7)
    assert (node.hash, node.type, node.payload, node.timestamp) == (
        typed_hash(TEXT, "hello"),
        TEXT,
        "hello",
        7,
    )
    assert not node.is_self_typed


def test_a_meta_schema_is_its_own_type() -> None:
    node = build_self_typed_node({"type": "object"}, timestamp=0)
    assert node.is_self_typed
    assert node.hash == node.type == self_typed_hash({"type": "object"})


def test_the_payload_is_in_canonical_form() -> None:
    node = build_node(META, {"minimum": 1.0}, timestamp=0)
    assert repr(node.payload) == "{'minimum': 1}"


@given(st.integers(0, 10**15), st.text())
def test_the_time_is_not_part_of_the_name(timestamp: int, text: str) -> None:
    assert build_node(TEXT, text, timestamp=timestamp).hash == typed_hash(TEXT, text)


def test_non_canonical_value_is_refused() -> None:
    with pytest.raises(NotCanonical):
        build_node(TEXT, "\ud800", timestamp=0)
    with pytest.raises(NotCanonical):
        build_self_typed_node({"a": float("nan")}, timestamp=0)


def test_content_kept_under_its_own_type_is_hashed_as_a_meta_schema() -> None:
    node = build_self_typed_node({"type": "object"}, timestamp=0)
    assert content_hash(node.hash, node.payload, name=node.hash) == node.hash
    assert content_hash(node.hash, node.payload, name=TEXT) == typed_hash(node.hash, node.payload)
