import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import NodeHash, is_node_hash
from uwf_git.model.node import NotCanonical, encode, self_typed_hash, typed_hash

# Made with json-cas itself: nodes keep their names when they move between the two.
VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "cas.json").read_bytes())
ONE, OTHER = NodeHash("0123456789ABC"), NodeHash("0123456789ABD")


def test_nodes_are_named_and_encoded_as_json_cas_does() -> None:
    for vector in VECTORS["self"]:
        assert self_typed_hash(vector["payload"]) == vector["hash"], vector["label"]
        assert encode(vector["payload"]).hex() == vector.get("cbor", mock.ANY), vector["label"]
    for vector in VECTORS["typed"]:
        name = typed_hash(vector["type"], vector["payload"])
        assert name == vector["hash"], vector["label"]


def test_the_type_is_part_of_the_name() -> None:
    assert len({typed_hash(ONE, 1), typed_hash(OTHER, 1), self_typed_hash(1)}) == 3


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_a_name_is_a_node_hash_and_ignores_the_order_of_keys(payload: dict[str, Any]) -> None:
    name = typed_hash(ONE, payload)
    assert is_node_hash(name)
    assert typed_hash(ONE, dict(reversed(payload.items()))) == name


@given(st.text(), st.text())
def test_changing_a_text_changes_the_name(one: str, other: str) -> None:
    assert (typed_hash(ONE, one) == typed_hash(ONE, other)) is (one == other)


@pytest.mark.parametrize("name", [typed_hash, lambda _type, payload: self_typed_hash(payload)])
def test_non_canonical_value_has_no_name(name: Any) -> None:
    with pytest.raises(NotCanonical):
        name(ONE, "\udc00")
