"""A role's answer as one object."""

from typing import Any

import pytest

from uwf_git.agentkit.extraction.ladder import (
    RoleAnswer,
    WantedObject,
    add_guide,
    build_wanted_object,
    find_misfit,
    read_answer,
)
from uwf_git.model.schema_check import check_schema, check_value

SCHEMA: dict[str, Any] = {
    "$defs": {"ok": {"type": "boolean"}},
    "type": "object",
    "properties": {"ok": {"$ref": "#/$defs/ok"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("schema", [SCHEMA, True, {}])
def test_what_is_wanted_is_a_schema_of_both_halves(schema: Any) -> None:
    wanted = build_wanted_object(schema).schema
    assert not check_schema(wanted)
    assert not check_value(wanted, {"content": "x", "meta": {"ok": True}})
    assert check_value(wanted, {"meta": {"ok": True}})


def test_the_roles_schema_holds_in_there() -> None:
    assert check_value(build_wanted_object(SCHEMA).schema, {"content": "x", "meta": {"ok": 1}})


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"content": "x", "meta": {"ok": True}}, RoleAnswer("x", {"ok": True})),
        ({"content": "x", "meta": {"ok": "?"}}, RoleAnswer("x", {"ok": "?"})),
        ({"content": 3, "meta": None}, RoleAnswer("", None)),
        ({"ok": True}, RoleAnswer("", {"ok": True})),
        ({"ok": "?"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_both_halves_are_read_and_bare_fields_if_they_fit(
    value: dict[str, Any] | None, answer: RoleAnswer | None
) -> None:
    assert read_answer(value, SCHEMA) == answer


def test_guide_stands_after_the_prompt() -> None:
    assert add_guide("Do it.\n").startswith("Do it.\n\nYour answer is taken as one JSON object")


OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("meta", "schema"), [({"n": 1}, OBJECT), (None, True), ("a", {"pattern": "^a$"})]
)
def test_what_fits_is_not_talked_about(meta: Any, schema: Any) -> None:
    assert find_misfit(meta, schema) == ""


@pytest.mark.parametrize(
    ("meta", "schema", "told"),
    [
        ({"n": "one"}, OBJECT, "n: 'one' is not of type 'integer'"),
        ({}, OBJECT, "'n' is a required property"),
        (None, OBJECT, "None is not of type 'object'"),
        (1, False, "False schema does not allow 1"),
    ],
)
def test_misfit_is_reported_with_its_place(meta: Any, schema: Any, told: str) -> None:
    assert told in find_misfit(meta, schema)


def test_endless_nesting_is_reported_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert find_misfit(deep, {"type": "array", "items": {"$ref": "#"}}) != ""


def test_object_is_asked_for_in_words_too_unless_its_prompt_does() -> None:
    wanted = WantedObject({"type": "object"}, "What it is.")

    assert wanted.is_told_in_words
    assert wanted.guide == ""
