from typing import Any

import pytest

from uwf_git.engine.least_value import list_least
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
