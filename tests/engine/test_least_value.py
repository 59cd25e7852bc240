from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.rehearsal import list_least
from uwf_git.model.schema_check import check_value

ITEM = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}


def least(schema: Any) -> Any:
    """Return the first value that fits."""
    return next(each for each in list_least(schema) if not check_value(schema, each))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, {}),
        ({}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"required": ["a"], "properties": {"a": {"type": "string"}}}, {"a": ""}),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "boolean"}, False),
        ({"const": True}, True),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": ["null", "string"]}, ""),
        ({"type": "null"}, None),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "exclusiveMinimum": 0}, 1),
        ({"type": "integer", "minimum": 3, "multipleOf": 5}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMaximum": 0}, -1.0),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 0.5),
        ({"type": "array"}, []),
        ({"type": "array", "minItems": 2, "items": ITEM}, [{"title": ""}] * 2),
        ({"minItems": 2, "uniqueItems": True, "items": {"enum": [1, 2, 3]}}, [1, 2]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ""),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": {}, "b": {}}),
        (
            {"$defs": {"a/b": ITEM}, "items": {"$ref": "#/$defs/a~1b"}, "minItems": 1},
            [{"title": ""}],
        ),
        ({"type": "string", "pattern": "^[0-9]{3}-.*[.]md$"}, "000-a.md"),
        ({"type": "string", "pattern": "^[a-z]+/[a-z]+$"}, "a/b"),
        ({"type": "object", "minProperties": 1, "properties": {"a": {"const": 1}}}, {"a": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_least_value_fits(schema: Any, value: Any) -> None:
    assert least(schema) == value
    assert type(least(schema)) is type(value)


def test_schema_that_holds_itself_has_an_end() -> None:
    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}}

    assert isinstance(next(list_least(node)), dict)


def test_no_value_is_made_up_for_what_nothing_fits() -> None:
    schema = {"type": "string", "pattern": "^xyzzy$"}

    assert not [each for each in list_least(schema) if not check_value(schema, each)]


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(-9, 9)
    least = st.fixed_dictionaries({"type": st.just(kind)}, optional={"minimum": bounds})
    return least | st.fixed_dictionaries({"type": st.just(kind), "exclusiveMinimum": bounds})


LEAVES = st.one_of(
    st.sampled_from([True, {}, {"type": "null"}, {"type": "boolean"}, {"enum": ["x", 1]}]),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 5)}),
    numbers("integer"),
    numbers("number"),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def of_fields(fields: dict[str, Any]) -> st.SearchStrategy[Any]:
        required = st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([])
        return st.builds(
            lambda names: {"type": "object", "properties": fields, "required": names}, required
        )

    listed = {"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)}
    return (
        st.dictionaries(st.sampled_from("abc"), inner).flatmap(of_fields)
        | st.fixed_dictionaries(listed)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    )


@given(st.recursive(LEAVES, containers, max_leaves=8))
def test_first_value_fits_whatever_the_schema_is_made_of(schema: Any) -> None:
    assert check_value(schema, next(list_least(schema))) == []
