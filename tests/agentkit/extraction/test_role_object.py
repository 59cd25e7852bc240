"""A role's answer as one object."""

from typing import Any

import pytest

from uwf_git.agentkit.extraction.role_object import (
    RoleAnswer,
    add_guide,
    build_wanted_object,
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
