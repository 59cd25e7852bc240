"""A thread as a task, and a question as a form."""

from typing import Any

import pytest

from uwf_git.commands.mcp.calls import Question, build_form, read_form, view_task

SHOWN: dict[str, Any] = {
    "thread": "01J7K9M2XB4Q8T6V0W1Y3Z5ABC",
    "workflowName": "demo",
    "status": "ready",
    "atWork": True,
    "depth": 1,
    "next": "writer",
    "state": {"x": 1},
    "startTime": 0,
    "lastUpdateTime": 10**20,
    "error": None,
}
ASKED = {"q-1": Question(SHOWN["thread"], "boss", "May it?", {"type": "boolean"})}
FAILED = {"status": "failed", "error": {"message": "it broke"}}
LIMIT = {"limit": "no steps are left"}


@pytest.mark.parametrize(
    ("facts", "status", "is_error"),
    [
        ({}, "working", None),
        ({"status": "running"}, "working", None),
        ({"status": "paused", "atWork": False}, "working", None),
        ({"status": "completed"}, "completed", False),
        ({"status": "killed"}, "cancelled", None),
        (FAILED | {"atWork": False}, "completed", True),
        (FAILED, "working", None),
        ({"status": "split", "branchStatus": "failed", "atWork": False}, "completed", True),
        ({"status": "split", "branchStatus": "failed"}, "working", None),
        (LIMIT | {"atWork": False}, "completed", True),
    ],
)
def test_status_of_a_thread_is_one_of_a_task(
    *, facts: dict[str, Any], status: str, is_error: bool | None
) -> None:
    task = view_task(SHOWN | facts, {})

    assert task["status"] == status
    assert task.get("result", {}).get("isError") is is_error
    assert (task["ttlMs"], task["createdAt"]) == (None, "1970-01-01T00:00:00Z")


def test_branch_that_asks_is_asked_for_while_others_work() -> None:
    task = view_task(SHOWN | {"status": "split", "branchStatus": "waiting"}, ASKED)
    assert task["status"] == "input_required"
    assert [*task["inputRequests"]] == ["q-1"]
    assert view_task(SHOWN | {"status": "completed"}, ASKED)["status"] == "completed"


SCHEMA = {
    "type": "object",
    "$defs": {"tag": {"type": "string", "pattern": "^a", "maxLength": 3}},
    "properties": {
        "ok": {"type": "boolean", "description": "Is it?"},
        "word": {"type": "string", "enum": ["a", "b"]},
        "level": {"enum": [1, 2], "type": "integer"},
        "tag": {"$ref": "#/$defs/tag"},
        "parts": {"type": "array", "items": {"type": "string"}, "description": "What it has"},
    },
    "required": ["ok", "parts"],
}


def test_form_has_what_a_client_can_show() -> None:
    form = build_form(SCHEMA)
    fields = form["properties"]
    assert form["required"] == ["ok", "parts"]
    assert fields["ok"] == {"type": "boolean", "description": "Is it?"}
    assert fields["word"] == {"type": "string", "enum": ["a", "b"]}
    assert fields["tag"] == {"type": "string", "maxLength": 3}
    assert fields["level"]["type"] == fields["parts"]["type"] == "string"
    assert fields["parts"]["description"].startswith("What it has: a list")


def test_filled_form_is_read_as_the_meta_and_a_text() -> None:
    filled = {"ok": True, "level": "2", "parts": '["x"]', "word": None, "content": "So."}
    assert read_form(SCHEMA, filled) == ({"ok": True, "level": 2, "parts": ["x"]}, "So.")
    assert read_form(SCHEMA, {"parts": "no JSON"}) == ({"parts": "no JSON"}, "")


def test_meta_without_fields_is_one_field() -> None:
    schema = {"oneOf": [{"type": "array"}, {"type": "null"}]}
    assert build_form(schema)["required"] == ["meta"]
    assert read_form(schema, {"meta": "[1]", "content": "x"}) == ([1], "x")
