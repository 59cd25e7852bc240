from typing import Any

import pytest

from uwf_git.engine.prompt import SchemaWords


@pytest.mark.parametrize(
    ("schema", "phrase"),
    [
        ({"type": "string"}, "text"),
        ({"type": "boolean"}, "true or false"),
        ({"type": ["integer", "null"], "minimum": 1}, "a whole number or null, at least 1"),
        ({"const": "$END"}, 'exactly "$END"'),
        ({"enum": ["ja", 1, None]}, 'one of "ja", 1, null'),
        ({"type": "array"}, "a list"),
        ({"type": "array", "items": {"type": "number"}}, "a list, each item a number"),
        (
            {"type": "string", "minLength": 1, "pattern": "^é\\d$"},
            'text, at least 1 characters, matching the regular expression "^é\\\\d$"',
        ),
        ({"anyOf": [{"type": "string"}, {"const": 0}]}, "text or exactly 0"),
        ({}, "any value"),
        (True, "any value"),
        ({"description": "x", "title": "y"}, "any value"),
        ({"$id": "a:b", "$schema": "a:c", "$comment": "x", "examples": [1]}, "any value"),
        ({"$defs": {"a": False}, "definitions": {"b": False}}, "any value"),
        ({"deprecated": True, "readOnly": True, "writeOnly": True}, "any value"),
    ],
)
def test_schema_is_put_in_words(schema: Any, phrase: str) -> None:
    words = SchemaWords(schema)

    assert words.phrase(schema) == phrase
    assert words.is_complete


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"type": "object", "patternProperties": {}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"anyOf": [{"type": "object", "properties": {"a": {}}}]},
        {"anyOf": [{"type": "string"}], "minLength": 1},
        {"type": "array", "items": {"not": {}}},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "minLength": 1, "$defs": {"a": {"type": "string"}}},
    ],
)
def test_what_words_leave_out_is_known(schema: Any) -> None:
    words = SchemaWords(schema)

    words.phrase(schema)

    assert not words.is_complete


def test_fields_are_listed_with_theirs() -> None:
    issue = {
        "type": "object",
        "properties": {"line": {"type": "integer"}, "file": {"$ref": "#/$defs/path"}},
        "required": ["file"],
    }
    schema = {
        "properties": {
            "issues": {"type": "array", "items": issue},
            "by": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "required": ["issues"],
        "$defs": {"path": {"type": "string", "description": "Seen\nfrom the root."}},
    }
    words = SchemaWords(schema)

    words.list_fields(schema)

    assert words.lines == [
        "- `issues` (required): a list of objects, each with the fields below",
        "  - `line` (optional): a whole number",
        "  - `file` (required): text. Seen from the root.",
        "- `by` (optional): an object",
        "  - `name` (optional): text",
    ]
    assert words.is_complete


def test_required_field_without_a_schema_is_not_forgotten() -> None:
    words = SchemaWords({})

    words.list_fields({"properties": {"a": {}}, "required": ["a", "b"]})

    assert words.lines == ["- `a` (required): any value"]
    assert not words.is_complete


def test_schema_that_leads_into_itself_comes_to_an_end() -> None:
    names = [f"f{n}" for n in range(10)]
    schema = {"properties": {name: {"$ref": "#"} for name in names}, "anyOf": [{"$ref": "#"}] * 10}
    words = SchemaWords(schema)

    words.list_fields(schema)

    assert 10 < len(words.lines) <= 210
    assert not words.is_complete
