"""The tools of `uwf mcp`: they change no store; a fit result goes to the step's directory."""

import json
import os
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any

from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.agents.request import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.read import render_thread
from uwf_git.commands.inspect.step_view import view_step
from uwf_git.commands.mcp.server import McpPlace
from uwf_git.commands.turn.check_meta import find_reply_problem
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.disk.durable import replace_file
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head, resolve_thread
from uwf_git.store.threads.snapshot import read_snapshot

SUBMITTED = "submitted.json"

# More than a model can read at once.
_LONGEST_TEXT = 400_000

MOST_EVENTS = 200
"""How many of the newest are read if no number is given: a thread may have any number."""

# The agent prints it, with what the kit adds.
_LONGEST_RESULT = DEFAULT_MAX_OUTPUT_BYTES - 1024**2


def bad_argument(name: str, problem: str) -> BadUsage:
    return BadUsage(f"{name} {problem}", code="bad-argument", argument=name)


def read_text(arguments: Mapping[str, Any], name: str, *, is_needed: bool = True) -> str:
    """Return an argument that is a text; "" if it is left out and not needed."""
    value = arguments.get(name, None if is_needed else "")
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
    if last is not None and (not _is_whole(last) or last < 1):
        raise bad_argument("last", "is a whole number from 1")
    store, thread = place.open_store(), _thread(place, arguments)
    text, length = [], 0
    for piece in render_thread(store, thread, last=min(last or MOST_EVENTS, sys.maxsize)):
        text.append(piece)
        length += len(piece)
        if length > _LONGEST_TEXT:
            cut = "\n\n[… cut here; ask for the last few steps, or for one with read_step]\n"
            return "".join(text)[:_LONGEST_TEXT] + cut
    if last is None and _count_steps(store, thread) > MOST_EVENTS:
        text.append(f"\n\n[… only the newest {MOST_EVENTS} events; ask for more with last]\n")
    return "".join(text)


def _count_steps(store: Store, thread: str) -> int:
    head = get_head(store, resolve_thread(store, thread))
    return read_snapshot(store, head.commit).record.depth


def read_step(place: McpPlace, arguments: Mapping[str, Any]) -> str:
    index: Any = arguments.get("index")
    if not _is_whole(index) or index == 0:
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
    if "meta" not in arguments:
        raise bad_argument("meta", "is missing")
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


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def parse_or_keep(text: str) -> Any:
    """Return the value that *text* is in JSON; *text* itself if it is no JSON."""
    try:
        return parse_strict_json(text)
    except BadJson:
        return text


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
