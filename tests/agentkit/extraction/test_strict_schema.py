"""Strict schemas: laws over generated schemas, and the cases that matter by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.agentkit.ladder import move_schema
from uwf_git.agentkit.llm.messages import derive_strict, restore
from uwf_git.model.builtin import follow_reference
from uwf_git.model.schema_check import check_schema, check_value

STRICT = Path(__file__).parent / "made_up" / "strict.json"


NAMES = st.sampled_from(["a", "b", "status", "sub-task"])
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "integer": st.integers(-9, 9),
    "number": st.floats(-9, 9).map(lambda value: round(value, 2)),
    "boolean": st.booleans(),
    "null": st.none(),
}

leaves = st.one_of(
    st.sampled_from(sorted(SIMPLE)).map(lambda kind: {"type": kind}),
    st.lists(st.sampled_from(sorted(SIMPLE)), min_size=1, max_size=3, unique=True).map(
        lambda kinds: {"type": kinds}
    ),
    st.sampled_from(["done", 3, True, None]).map(lambda value: {"const": value}),
    st.lists(st.sampled_from(["x", "y", 1, None]), min_size=1, unique=True).map(
        lambda values: {"enum": values}
    ),
)


def arrays(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return items.map(lambda each: {"type": "array", "items": each})


@st.composite
def objects(draw: st.DrawFn, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, parts, min_size=1, max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    schema = {"type": "object", "properties": properties, "required": required}
    return schema | draw(st.sampled_from([{"additionalProperties": False}, {}]))


def choices(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(parts, min_size=1, max_size=3).map(lambda each: {"anyOf": each})


schemas = st.recursive(
    leaves, lambda parts: st.one_of(arrays(parts), objects(parts), choices(parts)), max_leaves=6
)


@st.composite
def values_of(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Draw a value that fits *schema*, which is a strict one."""
    if "anyOf" in schema:
        return draw(values_of(draw(st.sampled_from(schema["anyOf"]))))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"]
    if isinstance(kind, list):
        kind = draw(st.sampled_from(kind))
    if kind == "object":
        return {name: draw(values_of(part)) for name, part in schema["properties"].items()}
    if kind == "array":
        return draw(st.lists(values_of(schema["items"]), max_size=2))
    return draw(SIMPLE[kind])


@settings(max_examples=60)
@given(schemas, st.data())
def test_what_fits_the_strict_schema_and_is_restored_fits_the_roles(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    strict = derive_strict(schema)
    assert strict is not None
    assert strict.is_exact
    value = data.draw(values_of(strict.schema))
    assert not check_value(strict.schema, value)
    assert not check_value(schema, restore(value, schema))


@settings(max_examples=60)
@given(schemas)
def test_a_strict_schema_is_of_the_kind_that_is_taken(schema: dict[str, Any]) -> None:
    strict = derive_strict(schema)
    assert strict is not None
    assert not check_schema(strict.schema)
    assert list(misfits(strict.schema)) == []


def misfits(schema: dict[str, Any]) -> list[str]:
    """List what no strict endpoint would take."""
    found = [] if schema.keys() <= KEYWORDS else [f"keywords {sorted(schema)}"]
    for each in schema.get("anyOf", []):
        found += misfits(each)
    if "anyOf" not in schema and "type" not in schema:
        found.append("no type")
    if schema.get("type") == "array":
        found += misfits(schema["items"])
    if schema.get("type") == "object":
        if schema["additionalProperties"] is not False:
            found.append("open")
        if schema["required"] != list(schema["properties"]):
            found.append("optional")
        for each in schema["properties"].values():
            found += misfits(each)
    return found


KEYWORDS = {
    "type",
    "enum",
    "anyOf",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "description",
}


@settings(max_examples=60)
@given(objects(leaves), st.data())
def test_nothing_that_an_object_can_say_is_lost(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    strict = derive_strict(schema)
    assert strict is not None
    said = data.draw(values_of(strict.schema))
    required = schema["required"]
    meant = {name: each for name, each in said.items() if each is not None or name in required}
    assume(not check_value(schema, meant))
    filled = {name: meant.get(name) for name in schema["properties"]}
    assert not check_value(strict.schema, filled)
    assert restore(filled, schema) == meant


def strict_of(schema: Any) -> dict[str, Any]:
    strict = derive_strict(schema)
    assert strict is not None
    return strict.schema


def test_variants_distinguished_by_a_constant_are_restored_as_they_were() -> None:
    done = {"properties": {"status": {"const": "done"}, "url": {"type": "string"}}}
    failed = {"properties": {"status": {"const": "failed"}, "why": {"type": "string"}}}
    role = {
        "oneOf": [
            done | {"required": ["status"], "additionalProperties": False},
            failed | {"required": ["status", "why"], "additionalProperties": False},
        ]
    }
    assert strict_of(role)["anyOf"][0]["required"] == ["status", "url"]
    assert restore({"status": "done", "url": None}, role) == {"status": "done"}
    value = {"status": "failed", "why": "no net"}
    assert restore(value, role) == value


def test_references_are_written_out_and_followed_back() -> None:
    role = {
        "$defs": {
            "note": {"properties": {"by": {"type": "string"}}, "type": "object"},
            "either": {"anyOf": [{"$ref": "#/$defs/note"}, {"type": "null"}]},
        },
        "type": "object",
        "properties": {"note": {"$ref": "#/$defs/note"}, "last": {"$ref": "#/$defs/either"}},
        "required": ["note", "last"],
    }
    assert "$ref" not in str(strict_of(role))
    assert restore({"note": {"by": None}, "last": {"by": None}}, role) == {"note": {}, "last": {}}


def test_schemas_and_references(golden: Callable[[str, str], None]) -> None:
    answers = {
        "derive_strict": derive_strict,
        "follow_reference": lambda target: follow_reference(ROOT, target),
    }
    golden("strict_schemas.txt", tell_cases(STRICT, answers))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60)
@given(schemas, JSON)
def test_restoring_what_does_not_fit_changes_no_more_than_nulls(
    schema: dict[str, Any], value: Any
) -> None:
    assert without_nulls(restore(value, schema)) == without_nulls(value)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


ROOT = {
    "$defs": {"a/b": {"type": "string"}, "list": [{"type": "null"}], "~": {"const": 1}},
    "properties": {"x": {"$ref": "#/$defs/a~1b"}},
}


@pytest.mark.parametrize("schema", [True, False])
def test_what_says_yes_or_no_says_it_anywhere(schema: bool) -> None:  # noqa: FBT001 (a schema)
    assert move_schema(schema, "#/x") is schema
