import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from model.test_builtin import FULL, schema

from uwf_git.errors import Problem
from uwf_git.model.plain_schema import is_plainly_valid
from uwf_git.model.schema_check import check_schema, check_value, point_out

MISFITS = Path(__file__).parent / "made_up" / "misfits.json"


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

_WORDS = """
    type properties patternProperties additionalProperties items prefixItems anyOf oneOf allOf if
    then else not required enum const minimum maximum multipleOf minLength maxLength pattern format
    $ref $dynamicRef $id $schema $anchor $dynamicAnchor $defs uniqueItems contains minContains
    maxContains dependentRequired dependentSchemas propertyNames unevaluatedItems
    unevaluatedProperties minItems minProperties a b
"""
KEYWORDS = _WORDS.split()
TREACHEROUS = [
    *(None, True, False, 0, -1, 1.5, 1e308, 5e-324, 10**20),
    *("", "#", "#/$defs/a", "#foo", "http://x/y", "http://[", "//", "%", "#%zz", "[", "^a$"),
    *("a", "object", "string", "array", "integer", "date", "regex", DRAFT_7, DRAFT_2020),
]
anything = st.recursive(
    st.sampled_from(TREACHEROUS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    ),
    max_leaves=10,
)


def test_each_problem_of_a_value_is_reported_with_its_place() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}, "b": {"const": 1}}}
    assert check_value(schema, {"a": ["x", 2], "b": 3}) == [
        Problem("a[1]", "2 is not of type 'string'"),
        Problem("b", "1 was expected"),
    ]
    (problem,) = check_value({"additionalProperties": {"const": 1}}, {"a.b": 2})
    assert problem.path == '["a.b"]'
    told = check_value({"enum": ["it's None", None, True]}, [False, "'None"])[0].message
    assert told == """[false, "'None"] is not one of ["it's None", null, true]"""


def test_misfits_are_told_with_their_fields(golden: Callable[[str, str], None]) -> None:
    answers = {"point_out": point_out, "check_value": check_value}
    golden("model/misfits.txt", tell_cases(MISFITS, answers))


def test_a_value_nested_too_deeply_is_a_problem() -> None:
    value: Any = "bottom"
    for _level in range(5000):
        value = [value]
    (problem,) = check_value({"items": {"$ref": "#"}}, value)
    assert "nested too deeply" in problem.message


@pytest.mark.parametrize("draft", [{}, {"$schema": DRAFT_2020}, {"$schema": DRAFT_7}])
def test_numbers_are_multiples_as_they_are_written(draft: Any) -> None:
    cents = {**draft, "items": {"anyOf": [{"multipleOf": 0.01}, {"type": "null"}]}}
    assert check_value(cents, [4.35, 19.99, 1e300, None]) == []
    assert point_out(cents, [4.35]) == []
    assert check_value({"multipleOf": 0.1}, 0.3, root={**draft, "multipleOf": 7}) == []
    (problem,) = check_value({**draft, "multipleOf": 0.01}, 4.355)
    assert problem.message == "4.355 is not a multiple of 0.01"


@given(anything, anything)
def test_whatever_is_checked_the_answer_is_problems(schema: Any, value: Any) -> None:
    assert all(isinstance(each, Problem) for each in check_schema(schema))
    assert all(isinstance(each, Problem) for each in check_value(schema, value))


def test_part_that_is_no_schema_is_told_once() -> None:
    told = check_schema({"properties": {f"f{number}": "boolean" for number in range(26)}})

    assert len({each.path for each in told}) == len(told) == 20


def test_id_that_is_no_url_is_a_problem() -> None:
    schema = {"$id": "http://["}

    assert [each.message for each in check_schema(schema)] == ["an $id is no URL: Invalid IPv6 URL"]
    assert all(isinstance(each, Problem) for each in check_value(schema, None))


def test_described_pattern_is_told_in_the_words_of_its_description() -> None:
    schema = {"pattern": "^[a-z]+@", "description": "an address, like ada@example.org"}

    assert point_out(schema, "Ada")[0].message == (
        "'Ada' does not fit: an address, like ada@example.org"
    )


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


@given(st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=4), VALUES)
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
