"""References within a schema."""

from typing import Any

import pytest

from uwf_git.agentkit.extraction.local_ref import follow_ref, move_schema
from uwf_git.model.schema_check import check_schema, check_value

ROOT = {
    "$defs": {"a/b": {"type": "string"}, "list": [{"type": "null"}], "~": {"const": 1}},
    "properties": {"x": {"$ref": "#/$defs/a~1b"}},
}


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("#", ROOT),
        ("#/$defs/a~1b", {"type": "string"}),
        ("#/$defs/~0", {"const": 1}),
        ("#/$defs/list/0", {"type": "null"}),
        ("#/$defs/list/1", None),
        ("#/$defs/list/x", None),
        ("#/nowhere", None),
        ("other.json#/x", None),
    ],
)
def test_a_reference_leads_where_it_says_or_nowhere(target: str, found: Any) -> None:
    assert follow_ref(ROOT, target) == found


def test_a_schema_that_was_moved_means_what_it_meant() -> None:
    schema = {
        "$id": "https://example.com/x",
        "$defs": {"word": {"type": "string"}},
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/word"},
            "many": {
                "type": "array",
                "items": {"anyOf": [{"$ref": "#/$defs/word"}, {"$ref": "#"}]},
            },
            "$ref": {"const": {"$ref": "#/$defs/word"}},
        },
    }
    moved = {"properties": {"meta": move_schema(schema, "#/properties/meta")}}
    assert not check_schema(moved)
    values = [
        {"one": "a", "many": ["b", {"one": "c"}]},
        {"one": 1},
        {"many": [{"one": 2}]},
        {"$ref": {"$ref": "#/$defs/word"}},
        {"$ref": "x"},
    ]
    verdicts = [not check_value(schema, value) for value in values]
    assert verdicts == [True, False, False, True, False]
    assert verdicts == [not check_value(moved, {"meta": value}) for value in values]


@pytest.mark.parametrize("schema", [True, False])
def test_what_says_yes_or_no_says_it_anywhere(schema: bool) -> None:  # noqa: FBT001 (a schema)
    assert move_schema(schema, "#/x") is schema
