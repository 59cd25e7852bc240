import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.test_builtin import FULL, schema

from uwf_git.model.plain_schema import is_plainly_valid
from uwf_git.model.schema_check import check_schema, check_value

TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0]) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional: dict[Any, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
        "properties": st.dictionaries(NAMES, inner, max_size=2),
        "additionalProperties": inner,
        "required": st.lists(NAMES, max_size=2, unique=True),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "title": NAMES,
        "patternProperties": st.dictionaries(st.just("a"), inner, max_size=1),
        "not": inner,
    }
    return st.fixed_dictionaries({}, optional=optional)


SCHEMAS = st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=4)


@given(SCHEMAS, VALUES)
def test_a_yes_is_jsonschemas_yes(schema: Any, value: Any) -> None:
    assert not check_schema(schema)
    if is_plainly_valid(schema, value):
        assert check_value(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {}),
        ({"type": ["string", "null"]}, None),
        (
            {
                "$id": "role-output-developer",
                "type": "object",
                "properties": {
                    "filesChanged": {"type": "array", "items": {"type": "string"}},
                    "verdict": {"enum": ["approved", "rejected"]},
                    "score": {"type": "integer", "minimum": 0, "maximum": 10},
                },
                "required": ["filesChanged", "verdict"],
                "additionalProperties": False,
            },
            {"filesChanged": ["a"], "verdict": "approved", "score": 3},
        ),
    ],
)
def test_the_schemas_of_most_roles_are_plain(schema: Any, value: Any) -> None:
    assert is_plainly_valid(schema, value)


@pytest.mark.parametrize("name", FULL)
@given(wrong=VALUES | st.floats(allow_nan=False) | st.text(), data=st.data())
def test_for_built_in_schemas_the_answer_is_jsonschemas(name: str, wrong: Any, data: Any) -> None:
    payload = copy.deepcopy(FULL[name])
    payload[data.draw(st.sampled_from([*payload, "later"]))] = wrong
    assert is_plainly_valid(schema(name), payload) == (check_value(schema(name), payload) == [])


def test_a_schema_may_be_deeper_than_any_stack() -> None:
    """The schema is compiled only as far as the value needs."""
    schema: Any = {"type": "string"}
    for _ in range(5000):
        schema = {"items": schema, "properties": {"a": schema}, "additionalProperties": schema}
    assert is_plainly_valid(schema, [[], {}])
    assert is_plainly_valid(schema, {"a": {"b": []}})
