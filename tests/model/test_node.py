import json
import math
import struct
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import (
    MAX_NESTING,
    MAX_SAFE_INTEGER,
    NotCanonical,
    build_node,
    canonical,
    encode,
    typed_hash,
)


@given(st.integers(0, 10**15), st.text())
def test_the_time_is_not_part_of_the_name(timestamp: int, text: str) -> None:
    assert build_node(TEXT, text, timestamp=timestamp).hash == typed_hash(TEXT, text)


def test_non_canonical_value_is_refused() -> None:
    with pytest.raises(NotCanonical):
        build_node(TEXT, "\ud800", timestamp=0)
    with pytest.raises(NotCanonical):
        build_node(None, {"a": float("nan")}, timestamp=0)


json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
json_values = st.recursive(
    json_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


def nested(levels: int, opening: str = "[", closing: str = "]") -> Any:
    return json.loads(f'{opening * levels}"bottom"{closing * levels}')


def nested_objects(levels: int) -> Any:
    return nested(levels, '{"a":', "}")


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        (math.nan, "$", "is nan"),
        ({"a": [1, math.inf]}, "$.a[1]", "is inf"),
        ({"a": {"b": "\ud800"}}, "$.a.b", "lone surrogate"),
        ({"a": {"\udfff": 1}}, "$.a", "lone surrogate"),
        ({"a": {1: 2}}, "$.a", "a key that is not a string: 1"),
        ([10**400], "$[0]", "no 64-bit float can hold"),
        ([b"bytes"], "$[0]", "is a bytes"),
        ({"a": {1, 2}}, "$.a", "is a set"),
        (nested(MAX_NESTING + 1), "$…", "nested more than 500 levels"),
        (nested_objects(MAX_NESTING + 1), "$…", "nested more than 500 levels"),
    ],
)
def test_non_canonical_value_is_refused_with_its_place(value: Any, path: str, problem: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical(value)
    assert caught.value.facts["path"] == path
    assert problem in caught.value.message


def test_a_long_list_below_a_long_key_costs_no_more_than_its_size() -> None:
    before = time.process_time()
    canonical({"k" * 1_000_000: list(range(100_000))})
    assert time.process_time() - before < 2


def test_the_deepest_value_is_encoded() -> None:
    assert encode(nested(MAX_NESTING)).startswith(b"\x81" * MAX_NESTING)
    assert encode(nested_objects(MAX_NESTING)).startswith(b"\xa1aa" * MAX_NESTING)


@given(json_values)
def test_the_form_of_a_form_is_itself(value: Any) -> None:
    form = canonical(value)
    assert canonical(form) == form
    assert encode(form) == encode(value)


@given(json_values)
def test_the_form_survives_json(value: Any) -> None:
    assert encode(json.loads(json.dumps(canonical(value)))) == encode(value)


@given(st.dictionaries(st.text(), json_scalars), st.data())
def test_bytes_do_not_depend_on_the_order_of_keys(fields: dict[str, Any], data: Any) -> None:
    keys = data.draw(st.permutations(list(fields)))
    assert encode([{key: fields[key] for key in keys}]) == encode([fields])


@given(st.dictionaries(st.text(), st.none(), min_size=2))
def test_keys_are_ordered_by_length_then_bytes(fields: dict[str, None]) -> None:
    encoded = encode(fields)
    keys = sorted((key.encode() for key in fields), key=lambda key: (len(key), key))
    at = [encoded.index(encode(key.decode()) + b"\xf6") for key in keys]
    assert at == sorted(at)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_an_integer_or_a_wide_float(number: float) -> None:
    assert isinstance(canonical(MAX_SAFE_INTEGER), int)
    encoded = encode(number)
    if number.is_integer() and abs(number) <= MAX_SAFE_INTEGER:
        assert encoded == encode(int(number))
    else:
        assert encoded == b"\xfb" + struct.pack(">d", number)


@given(json_values, json_values)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    same = json.dumps(canonical(one), sort_keys=True) == json.dumps(
        canonical(other), sort_keys=True
    )
    assert (encode(one) == encode(other)) is same


# Made with json-cas itself: nodes keep their names when they move between the two.
VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "cas.json").read_bytes())
ONE, OTHER = NodeHash("0123456789ABC"), NodeHash("0123456789ABD")


def test_nodes_are_named_and_encoded_as_json_cas_does() -> None:
    for vector in VECTORS["self"]:
        assert typed_hash(None, vector["payload"]) == vector["hash"], vector["label"]
        assert encode(vector["payload"]).hex() == vector.get("cbor", mock.ANY), vector["label"]
    for vector in VECTORS["typed"]:
        assert typed_hash(vector["type"], vector["payload"]) == vector["hash"], vector["label"]
