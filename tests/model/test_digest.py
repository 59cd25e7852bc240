import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.canonical import NotCanonical, encode
from uwf_git.model.digest import self_typed_hash, typed_hash
from uwf_git.model.names import NodeHash, is_node_hash

# Made with json-cas itself: nodes keep their names when they move between the two.
VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "cas.json").read_bytes())
ONE, OTHER = NodeHash("0123456789ABC"), NodeHash("0123456789ABD")


def label(vector: dict[str, Any]) -> str:
    return str(vector["label"])


@pytest.mark.parametrize("vector", VECTORS["self"], ids=label)
def test_meta_schemas_are_named_as_json_cas_does(vector: dict[str, Any]) -> None:
    assert self_typed_hash(vector["payload"]) == vector["hash"]


@pytest.mark.parametrize("vector", VECTORS["typed"], ids=label)
def test_nodes_are_named_as_json_cas_does(vector: dict[str, Any]) -> None:
    assert typed_hash(vector["type"], vector["payload"]) == vector["hash"]


@pytest.mark.parametrize("vector", [each for each in VECTORS["self"] if "cbor" in each], ids=label)
def test_payloads_are_encoded_as_json_cas_does(vector: dict[str, Any]) -> None:
    assert encode(vector["payload"]).hex() == vector["cbor"]


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
