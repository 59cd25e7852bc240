"""A role's answer as one object."""

from typing import Any

import pytest

from uwf_git.agentkit.ladder import RoleAnswer, WantedObject, find_misfit, read_answer

SCHEMA: dict[str, Any] = {
    "$defs": {"ok": {"type": "boolean"}},
    "type": "object",
    "properties": {"ok": {"$ref": "#/$defs/ok"}},
    "required": ["ok"],
    "additionalProperties": False,
}


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


def test_endless_nesting_is_reported_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert find_misfit(deep, {"type": "array", "items": {"$ref": "#"}}) != ""


def test_object_is_asked_for_in_words_too_unless_its_prompt_does() -> None:
    wanted = WantedObject({"type": "object"}, "What it is.")

    assert wanted.is_told_in_words
    assert wanted.guide == ""
