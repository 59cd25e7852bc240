"""The tools of `uwf mcp`: they change no store; a fit result goes to the step's directory."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.agents.command_line import DEFAULT_MAX_OUTPUT_BYTES, BadJson, parse_strict_json
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.read import render_thread
from uwf_git.commands.inspect.show import view_step
from uwf_git.commands.mcp.server import McpPlace
from uwf_git.commands.turn.turn import find_reply_problem
from uwf_git.engine.prompt import SchemaWords
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.event_folds import count_steps
from uwf_git.model.text import render_time
from uwf_git.model.thread import ENDED
from uwf_git.store.durable import replace_file
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_snapshot, walk_history
from uwf_git.store.threads.naming import resolve_thread

SUBMITTED = "submitted.json"

# More than a model can read at once.
_LONGEST_TEXT = 400_000

MOST_EVENTS = 200
"""How many of the newest are read if no number is given: a thread may have any number."""

# The agent prints it, with what the kit adds.
_LONGEST_RESULT = DEFAULT_MAX_OUTPUT_BYTES - 1024**2


def bad_argument(name: str, problem: str) -> BadUsage:
    return BadUsage(f"{name} {problem}", code="bad-argument", argument=name)


def check_given(arguments: Mapping[str, Any], name: str) -> None:
    if name not in arguments:
        raise bad_argument(name, "is missing")


def read_text(arguments: Mapping[str, Any], name: str, *, is_needed: bool = True) -> str:
    """Return an argument that is a text; "" if it is left out and not needed."""
    if is_needed:
        check_given(arguments, name)
    value = arguments.get(name, "")
    if not isinstance(value, str):
        raise bad_argument(name, "is not a text")
    return value


def _result_refused(problem: str) -> Refused:
    return Refused(
        f"this result was not accepted: {problem}",
        code="result-refused",
        hint="Correct it and call submit_result again; read_role has the schema. Do not make "
        "up a value that you do not know.",
    )


def read_thread(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    last = arguments.get("last")
    if last is not None and (type(last) is not int or last < 1):
        raise bad_argument("last", "is a whole number from 1")
    store = place.open_store()
    head = get_head(store, resolve_thread(store, _thread(place, arguments)))
    text, length = [], 0
    for piece in render_thread(store, head.thread, last=min(last or MOST_EVENTS, sys.maxsize)):
        text.append(piece)
        length += len(piece)
        if length > _LONGEST_TEXT:
            cut = "\n\n[… cut here; ask for the last few steps, or for one with read_step]\n"
            return "".join(text)[:_LONGEST_TEXT] + cut
    history = walk_history(store, head.commit, through_forks=True)
    events = (each for each in history if each.record.event != "start")
    if last is None and any(islice(events, MOST_EVENTS, None)):
        text.append(f"\n\n[… only the newest {MOST_EVENTS} events; ask for more with last]\n")
    return "".join(text)


def read_step(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    check_given(arguments, "index")
    index: Any = arguments["index"]
    if type(index) is not int or index == 0:
        raise bad_argument("index", "is a whole number: 1 is the first step, -1 the newest")
    store = place.open_store()
    head = get_head(store, resolve_thread(store, _thread(place, arguments)))
    snapshot = read_snapshot(store, head.commit)
    depth = snapshot.record.depth
    number = index if index > 0 else depth + 1 + index
    if not 1 <= number <= depth:
        raise Refused(f"thread {head.thread} has no step {index}; it has {depth}", code="no-step")
    step = next(islice(snapshot.walk_chain(), depth - number, None))
    return as_json({"index": number, **view_step(snapshot, step)})


def read_role(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    """Return the agent's task, role and schema as JSON."""
    context = get_context(place.open_store(), _thread(place, arguments), role=place.role)
    document = {"task": context["start"]["prompt"], **context["role"]}
    for name in ("visit", "attempt", "lastError", "state", "hint"):
        document[name] = context[name]
    document |= {name: context[name] for name in ("input", "node", "iteration") if name in context}
    return as_json(document)


def submit_result(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    """Accept a result that can be recorded as the agent's reply."""
    if place.step_dir is None:
        raise Refused("no step is under way here, so no result can be submitted", code="no-step")
    check_given(arguments, "meta")
    content = read_text(arguments, "content", is_needed=False)
    context = get_context(place.open_store(), _thread(place, {}), role=place.role)
    if place.head not in (None, context["head"]):
        raise Refused("the thread has moved on; this turn is over", code="no-step")
    schema = context["role"]["outputSchema"]
    meta = arguments["meta"]
    problem = find_reply_problem(schema, {"meta": meta, "content": content})
    if problem is not None and isinstance(meta, str):
        # Some models send the object as a JSON text.
        meta = parse_or_keep(meta)
        problem = find_reply_problem(schema, {"meta": meta, "content": content}) and problem
    if problem is not None:
        raise _result_refused(problem)
    result = json.dumps({"meta": meta, "content": content}).encode()
    if len(result) > _LONGEST_RESULT:
        raise _result_refused(f"it is longer than {_LONGEST_RESULT // 1024**2} MB")
    replace_file(os.path.join(place.step_dir, SUBMITTED), result)
    return "The result was accepted. End your turn now; a short closing message is enough."


def _thread(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    thread = arguments.get("thread_id") or place.thread
    if thread is None:
        raise Refused("no thread was given", code="no-thread", hint="give thread_id")
    if not isinstance(thread, str):
        raise bad_argument("thread_id", "is not a text")
    return thread


def parse_or_keep(value: Any) -> Any:
    """Return the value that a text is in JSON; *value* itself if it is no text, or no JSON."""
    with suppress(BadJson):
        return parse_strict_json(value) if isinstance(value, str) else value
    return value


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# A thread as a task of the Model Context Protocol, and a question as its form. Nothing is read.
#
# Source: SEP-2663, the extension io.modelcontextprotocol/tasks of revision 2026-07-28;
# elicitation of the same revision, whose forms have fields of text, numbers, choices, and yes or
# no.

_POLL_MS = 2000
# The last second of the year 9999.
_LAST_MS = 253_402_300_799_000

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

    Besides it has ``atWork``: whether anybody is, and ``limit``: why no further step can be taken.
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
        held = (each["error"] for each in shown.get("heldBy", []) if each["status"] == "failed")
        return str((shown.get("error") or {}).get("message") or next(held, "a branch has failed"))
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
        "message": question.message,
        "requestedSchema": build_form(question.schema),
    }
    return {"method": "elicitation/create", "params": params}


def build_form(schema: Any) -> dict[str, Any]:
    """Return the form for a value of *schema*; what it cannot have is asked for as JSON."""
    words = SchemaWords(schema)
    resolved = words.resolve(schema)
    fields = _list_fields(schema) or {_META: resolved}
    needed = resolved.get("required", [])
    properties = {
        name: _view_field(part, f"{words.phrase(part)}, as JSON") for name, part in fields.items()
    }
    required = [name for name in fields if name in needed or name == _META]
    properties.setdefault(
        _CONTENT, {"type": "string", "description": "Your text, if there is more to say"}
    )
    return {"type": "object", "properties": properties, "required": required}


def read_form(schema: Any, filled: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the meta and the text of a form that was filled in; what does not fit stays so."""
    own = _list_fields(schema)
    fields = own or {_META: SchemaWords(schema).resolve(schema)}
    meta = {
        name: parse_or_keep(filled[name]) if _find_scalar(part) is None else filled[name]
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


def _find_scalar(part: Mapping[str, Any]) -> str | None:
    """Return the type of a field that a form may have; null beside a type is no such type."""
    kind = part.get("type")
    if kind == "string":
        return "string" if all(isinstance(each, str) for each in part.get("enum", ())) else None
    return kind if isinstance(kind, str) and kind in _SCALARS and "enum" not in part else None


def _view_field(part: Mapping[str, Any], otherwise: str) -> dict[str, Any]:
    kind = _find_scalar(part)
    if kind is None:
        told = part.get("description")
        return {"type": "string", "description": f"{told}: {otherwise}" if told else otherwise}
    return {"type": kind, **{name: part[name] for name in _SCALARS[kind] if name in part}}


def _render(time_ms: int) -> str:
    """Write a time in ISO 8601; one beyond the calendar as its end."""
    return f"{render_time(min(time_ms, _LAST_MS)).removesuffix(' UTC').replace(' ', 'T')}Z"
