"""A thread as a task, and a question as a form."""

from pathlib import Path
from typing import Any

import pytest
from commands.world import World, says
from refusing import refuses

from uwf_git.agentkit.turn import read_submitted
from uwf_git.commands.mcp import calls
from uwf_git.commands.mcp.calls import (
    Question,
    build_form,
    read_form,
    read_step,
    read_thread,
    submit_result,
    view_task,
)
from uwf_git.commands.mcp.server import McpPlace, build_server
from uwf_git.errors import Refused


@pytest.fixture
def place(world: World, tmp_path: Path) -> McpPlace:
    """Return the place of a checker after a step of the writer."""
    thread = world.stepped()
    step_dir = tmp_path / "step"
    step_dir.mkdir()
    head = world.snapshot(thread).record.node
    return McpPlace(lambda: world.store, thread, "checker", head, str(step_dir))


def test_own_thread_and_another_are_read(world: World, place: McpPlace) -> None:
    other = world.start(prompt="Something else.")

    assert "some words" in read_thread(place, {})
    assert "Something else." in read_thread(place, {"thread_id": other})
    with refuses("no-thread"):
        read_thread(place._replace(thread=None), {})


def test_long_thread_is_cut_with_a_word(world: World, place: McpPlace) -> None:
    assert place.thread is not None
    world.step(place.thread, says({"ok": False}, "x" * 500_000))

    told = read_thread(place, {})
    assert len(told) < 401_000
    assert told.endswith("or for one with read_step]\n")


@pytest.mark.parametrize("index", [2, -2, 10**9])
def test_missing_step_is_refused(index: int, place: McpPlace) -> None:
    with refuses("no-step", match=f"has no step {index}; it has 1"):
        read_step(place, {"index": index})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "index is missing"),
        ({"index": 0}, "index is a whole number"),
        ({"index": "1"}, "index is a whole number"),
        ({"index": True}, "index is a whole number"),
        ({"index": 1, "thread_id": 7}, "thread_id is not a text"),
    ],
)
def test_step_is_not_guessed(arguments: dict[str, Any], told: str, place: McpPlace) -> None:
    with refuses("bad-argument", match=told):
        read_step(place, arguments)


def test_last_is_not_guessed(place: McpPlace) -> None:
    for last in (0, "2", 1.5, False):
        with refuses("bad-argument"):
            read_thread(place, {"last": last})


def test_last_result_counts(place: McpPlace) -> None:
    submit_result(place, {"meta": {"ok": True}, "content": "Fine."})
    submit_result(place, {"meta": {"ok": False}})

    assert read_submitted(place.step_dir) == {"meta": {"ok": False}, "content": ""}


def test_object_that_was_written_as_a_text_is_read(place: McpPlace) -> None:
    submit_result(place, {"meta": '{"ok": true}'})
    assert read_submitted(place.step_dir) == {"meta": {"ok": True}, "content": ""}
    for text in ("{", "yes", '{"ok": 1}'):
        with refuses("result-refused"):
            submit_result(place, {"meta": text})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"meta": {"ok": True, "score": float("nan")}}, "meta.score"),
        ({"meta": {"ok": True, "score": 10**400}}, "meta.score"),
        ({"meta": {"ok": True, "\ud800": 1}}, "surrogate"),
        ({"meta": {"ok": True}, "content": "half \ud83d"}, "content"),
        ({"meta": '{"ok": false, "ok": true}'}, "not of type"),
        ({"meta": '{"ok": true, "score": NaN}'}, "not of type"),
        ({"meta": {"ok": True}, "content": "x" * 16 * 1024**2}, "longer than 15 MB"),
    ],
)
def test_result_that_no_step_can_hold_is_refused(
    arguments: dict[str, Any], problem: str, place: McpPlace
) -> None:
    with refuses("result-refused", match=problem):
        submit_result(place, arguments)
    assert read_submitted(place.step_dir) is None


@pytest.mark.parametrize("arguments", [{}, {"content": "x"}, {"meta": {"ok": True}, "content": 1}])
def test_half_a_result_is_refused(arguments: dict[str, Any], place: McpPlace) -> None:
    with refuses("bad-argument"):
        submit_result(place, arguments)


def test_nothing_is_taken_where_no_step_is_taken(world: World, place: McpPlace) -> None:
    with refuses("no-step", match="no step is under way"):
        submit_result(place._replace(step_dir=None), {"meta": {"ok": True}})
    with refuses("no-step", match="moved on"):
        submit_result(place._replace(head="0000000000000"), {"meta": {"ok": True}})
    assert place.thread is not None
    world.step(place.thread)
    world.step(place.thread)
    with pytest.raises(Refused):
        submit_result(place, {"meta": {"ok": True}})


def test_long_thread_is_read_from_its_newest_events(
    world: World, place: McpPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.thread is not None
    monkeypatch.setattr(calls, "MOST_EVENTS", 2)
    assert "only the newest" not in read_thread(place, {})
    for number in range(2):
        world.step(place.thread, says({"ok": False}, f"checked {number}"))
        world.step(place.thread, says({"text": f"text {number}"}, f"written {number}"))

    told = read_thread(place, {})

    assert "written 1" in told
    assert "checked 1" in told
    assert "written 0" not in told
    assert told.endswith("[… only the newest 2 events; ask for more with last]\n")
    assert "written 0" in read_thread(place, {"last": 9})


def test_failed_attempts_are_events_that_may_be_left_out(
    world: World, place: McpPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST_EVENTS", 2)
    assert place.thread is not None
    world.fail(place.thread)
    assert "only the newest" not in read_thread(place, {})
    world.retry(place.thread)
    assert "only the newest 2 events" in read_thread(place, {})


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
HELD = {"status": "split", "branchStatus": "failed", "heldBy": [FAILED | {"error": "it broke"}]}
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
        (HELD | {"atWork": False}, "completed", True),
        (HELD, "working", None),
        (LIMIT | {"atWork": False}, "completed", True),
    ],
)
def test_status_of_a_thread_is_one_of_a_task(
    *, facts: dict[str, Any], status: str, is_error: bool | None
) -> None:
    task = view_task(SHOWN | facts, {})

    assert task["status"] == status
    assert task.get("result", {}).get("isError") is is_error
    assert ("it broke" in task["statusMessage"]) == ("failed" in str(facts) and bool(is_error))
    assert (task["ttlMs"], task["createdAt"]) == (None, "1970-01-01T00:00:00Z")
    assert task["lastUpdatedAt"] == "9999-12-31T23:59:59Z"


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


def test_field_that_may_be_null_is_asked_for_as_json() -> None:
    fields = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
    }
    schema = {"$ref": "#/$defs/whole", "$defs": {"whole": fields}}

    form = build_form(schema)

    assert form["properties"]["a"] == {"type": "string", "description": "text or null, as JSON"}
    assert form["required"] == ["a"]
    assert read_form(schema, {"a": "null"}) == ({"a": None}, "")
    assert read_form(schema, {"a": "plain"}) == ({"a": "plain"}, "")


def test_filled_form_is_read_as_the_meta_and_a_text() -> None:
    filled = {"ok": True, "level": "2", "parts": '["x"]', "word": None, "content": "So."}
    assert read_form(SCHEMA, filled) == ({"ok": True, "level": 2, "parts": ["x"]}, "So.")
    assert read_form(SCHEMA, {"parts": "no JSON"}) == ({"parts": "no JSON"}, "")


def test_meta_without_fields_is_one_field() -> None:
    schema = {"oneOf": [{"type": "array"}, {"type": "null"}]}
    assert build_form(schema)["required"] == ["meta"]
    assert read_form(schema, {"meta": "[1]", "content": "x"}) == ([1], "x")


def ask(place: McpPlace, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    told = build_server(place).answer(message)
    assert told is not None
    return told["result"]
