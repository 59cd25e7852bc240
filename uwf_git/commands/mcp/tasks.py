"""A thread as a task of the Model Context Protocol, and a question as its form. Nothing is read.

Source: SEP-2663, the extension io.modelcontextprotocol/tasks of revision 2026-07-28; elicitation of
the same revision, whose forms have fields of text, numbers, choices, and yes or no.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.commands.mcp.calls import parse_or_keep
from uwf_git.engine.prompt import SchemaWords
from uwf_git.model.event_words import count_steps
from uwf_git.model.text import render_time
from uwf_git.model.thread import ENDED

_POLL_MS = 2000
_LONGEST_MESSAGE = 8000

_CONTENT = "content"
"""The field of a form for the text beside the meta, unless the meta has one of that name."""

_META = "meta"
"""The field of a form for a meta without fields."""

_SCALARS = {
    "boolean": ("title", "description", "default"),
    "integer": ("title", "description", "default", "minimum", "maximum"),
    "number": ("title", "description", "default", "minimum", "maximum"),
    "string": ("title", "description", "default", "minLength", "maxLength", "enum"),
}


class Question(NamedTuple):
    thread: str
    """The thread that waits: the task's own, or a branch of it."""

    role: str
    message: str
    schema: Any


def view_task(
    shown: Mapping[str, Any], questions: Mapping[str, Question], *, waits: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the task of a thread that `thread show` shows.

    Besides it has ``atWork``: whether anybody is, and ``limit``: why no further step may be taken.
    *questions* are those that the client may ask its user, by keys that are never used twice;
    *waits* are roles whose person is to answer elsewhere. A failed thread is a completed task whose
    result is an error: a failed one stands for an error of the protocol.
    """
    status = shown["status"]
    problem = _find_problem(shown)
    task = {
        "taskId": shown["thread"],
        "status": "working",
        "statusMessage": tell_status(shown, waits),
        "createdAt": _render(shown["startTime"]),
        "lastUpdatedAt": _render(shown["lastUpdateTime"]),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }
    if status == "killed":
        return task | {"status": "cancelled"}
    if status in ENDED or problem is not None:
        return task | {"status": "completed", "result": _build_result(shown, problem)}
    if questions:
        asked = {key: _ask(question) for key, question in questions.items()}
        return task | {"status": "input_required", "inputRequests": asked}
    return task


def tell_status(shown: Mapping[str, Any], waits: Sequence[str] = ()) -> str:
    """Return in a line where a thread stands."""
    thread = shown["thread"]
    words = [count_steps(shown["depth"])]
    words += [str(shown["next"])] if shown.get("next") and shown["status"] not in ENDED else []
    words += [f"waits for a person as {role}: `uwf thread answer {thread}`" for role in waits]
    problem = _find_problem(shown)
    words += [] if problem is None else [problem]
    if shown["status"] in {"ready", "split"} and not (waits or problem or shown["atWork"]):
        words.append("nobody is at work: steer_thread with resume lets it go on")
    status = shown.get("branchStatus", shown["status"])
    return f"{shown['workflowName']}: {status}, {', '.join(words)}"


def _find_problem(shown: Mapping[str, Any]) -> str | None:
    """Return why a thread does not go on by itself; None if it may."""
    if shown["status"] in ENDED or shown["atWork"]:
        return None
    if "failed" in (shown["status"], shown.get("branchStatus")):
        error = shown.get("error") or {}
        return str(error.get("message") or "a branch has failed")
    return shown.get("limit")


def _build_result(shown: Mapping[str, Any], problem: str | None) -> dict[str, Any]:
    step = shown.get("step") or {}
    text = "\n\n".join(
        each for each in (tell_status(shown), step.get("content") or "") if each.strip()
    )
    facts = {name: shown[name] for name in ("thread", "status", "state")}
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "structuredContent": facts | {"meta": step.get("meta")},
        "isError": problem is not None,
    }


def _ask(question: Question) -> dict[str, Any]:
    params = {
        "mode": "form",
        "message": question.message[:_LONGEST_MESSAGE],
        "requestedSchema": build_form(question.schema),
    }
    return {"method": "elicitation/create", "params": params}


def build_form(schema: Any) -> dict[str, Any]:
    """Return the form for a value of *schema*; what it cannot have is asked for as JSON."""
    fields = _list_fields(schema) or {_META: schema}
    needed = schema.get("required", []) if isinstance(schema, dict) else []
    properties = {
        name: _view_field(part, f"{SchemaWords(schema).phrase(part)}, as JSON")
        for name, part in fields.items()
    }
    required = [name for name in fields if name in needed or name == _META]
    properties.setdefault(
        _CONTENT, {"type": "string", "description": "Your text, if there is more to say"}
    )
    return {"type": "object", "properties": properties, "required": required}


def read_form(schema: Any, filled: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the meta and the text of a form that was filled in; what does not fit stays so."""
    own = _list_fields(schema)
    fields = own or {_META: schema}
    meta = {
        name: _parse(filled[name]) if _find_scalar(part) is None else filled[name]
        for name, part in fields.items()
        if filled.get(name) is not None
    }
    text = "" if _CONTENT in fields else filled.get(_CONTENT) or ""
    return (meta if own else meta.get(_META)), text if isinstance(text, str) else ""


def _list_fields(schema: Any) -> dict[str, Any]:
    """Return the schemas of the fields of a meta; empty if it is asked for as a whole."""
    words = SchemaWords(schema)
    properties = words.resolve(schema).get("properties") or {}
    return {name: words.resolve(part) for name, part in properties.items()}


def _find_scalar(part: Any) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    choices = part.get("enum", ["", ""]) if isinstance(part, dict) else []
    fits = kind == "string" and all(isinstance(each, str) for each in choices)
    return kind if fits or (kind in _SCALARS and "enum" not in part) else None


def _view_field(part: Any, otherwise: str) -> dict[str, Any]:
    kind = _find_scalar(part)
    if kind is None:
        told = part.get("description") if isinstance(part, dict) else None
        return {"type": "string", "description": f"{told}: {otherwise}" if told else otherwise}
    return {"type": kind, **{name: part[name] for name in _SCALARS[kind] if name in part}}


def _parse(value: Any) -> Any:
    return parse_or_keep(value) if isinstance(value, str) else value


def _render(time_ms: int) -> str:
    return f"{render_time(time_ms).removesuffix(' UTC').replace(' ', 'T')}Z"
