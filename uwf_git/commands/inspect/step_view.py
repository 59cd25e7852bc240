"""Views of steps: step and attempt nodes, tries and failed attempts as documents."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uwf_git.commands.turn.check_meta import get_output_schema
from uwf_git.commands.turn.choose_agent import find_work_retries
from uwf_git.commands.turn.flow import FlowPlace, fill_work_input
from uwf_git.engine.flow_state import describe_rejection, find_suggestion, list_issues
from uwf_git.engine.form import list_questions
from uwf_git.engine.lazy_list import LazyList, lazy_list
from uwf_git.engine.log_lines import find_outputs
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, STEP
from uwf_git.model.event_rules import CONTROLS, STEPS
from uwf_git.model.event_words import describe_step, first_line
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Role, Workflow, parse_role, parse_workflow
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.history import StepChain, walk_history
from uwf_git.store.threads.snapshot import Snapshot, check_type, get_typed, read_snapshot

# Step views: step and attempt nodes as documents.
#
# Keys are only ever added. A document is never the stored payload, so that the format may change.

_COPIED = ("startedAt", "durationMs", "usage", "session", "rung", "state")
_REFERRED = {"prompt": "prompt", "trace": "trace", "log": "stderr", "execContext": "execContext"}
"""The nodes of a step that a view only names; an attempt's log is in its view."""


def view_step(snapshot: Snapshot, step: Node) -> dict[str, Any]:
    """Return the document of a StepNode; *snapshot* holds the nodes that it refers to.

    Raises:
        MissingNode, DamagedNode: it is no step, or one of these cannot be read.
    """
    return _view_step(snapshot, step, Commands(snapshot))


def _view_step(snapshot: Snapshot, step: Node, commands: "Commands") -> dict[str, Any]:
    payload = check_type(step, STEP).payload
    view: dict[str, Any] = {
        "hash": step.hash,
        "role": payload["role"],
        "meta": payload["meta"],
        "content": get_text(snapshot, payload.get("content")),
        "agent": commands.get(payload.get("agent")),
        "timestamp": step.timestamp,
    }
    view |= {name: payload[name] for name in _COPIED if name in payload}
    return view | _name_referred(payload, _REFERRED)


def _name_referred(payload: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    # Only the names: a prompt may have a hundred pages, and `json-cas get` prints it.
    fields = {name: _REFERRED[name] for name in names}
    return {name: find_reference(payload[at]) for name, at in fields.items() if at in payload}


def view_steps(snapshot: Snapshot, before: Sequence[int] = ()) -> LazyList[dict[str, Any]]:
    """Return the documents of all steps, oldest first, each read when it is accessed.

    *before* adds the steps before a branch began, as ``StepChain`` does.

    Raises (when one of them is read):
        MissingNode, DamagedNode, StoreDamaged: the chain is broken.
    """
    commands, chain = Commands(snapshot), StepChain(snapshot, before)
    return lazy_list(len(chain), lambda place: _view_step(snapshot, chain.get(place), commands))


def view_attempt(snapshot: Snapshot, name: NodeHash | None) -> dict[str, Any] | None:
    """Return the document of the failed attempt *name*, with its output; None for None."""
    if name is None:
        return None
    attempt = get_typed(snapshot, name, ATTEMPT)
    payload = attempt.payload
    view: dict[str, Any] = {
        "hash": attempt.hash,
        "role": payload["role"],
        "error": payload["error"],
        "content": get_text(snapshot, payload.get("content")),
        "stderr": get_text(snapshot, payload.get("stderr")),
        "agent": get_command(snapshot, payload.get("agent")),
        "timestamp": attempt.timestamp,
    }
    copied = ("exitCode", "resetAt", *_COPIED)
    view |= {name: payload[name] for name in copied if name in payload}
    return view | _name_referred(payload, ("prompt", "trace"))


def view_error(snapshot: Snapshot, attempt: NodeHash | None) -> dict[str, Any] | None:
    """Return the error of *attempt*; None for None."""
    if attempt is None:
        return None
    error: dict[str, Any] = get_typed(snapshot, attempt, ATTEMPT).payload["error"]
    return {"kind": error["kind"], "message": error["message"]}


def view_failure(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return why the last try failed: the error of an attempt, or a verdict that rejected it."""
    verdict = find_verdict(snapshot, present) if present.last_attempt is None else None
    if verdict is None:
        return view_error(snapshot, present.last_attempt)

    told = describe_rejection(verdict.payload["role"], verdict.payload["meta"])
    return {"kind": "rejected", "message": told}


def find_verdict(snapshot: Snapshot, present: ThreadState) -> Node | None:
    """Return the verdict that ended the last try, if one did and the next is not done yet."""
    tried = present.tried
    if tried is None or tried.is_verdict or tried.reason is None:
        return None
    node = snapshot.get_node(tried.reason)
    return node if node.type == STEP else None


def get_text(snapshot: Snapshot, ref: Any) -> str:
    """Return the text that a reference points at; "" for no reference."""
    target = find_reference(ref)
    return "" if target is None else str(snapshot.get_node(target).payload)


def get_command(snapshot: Snapshot, ref: Any) -> str:
    """Return the command of the AgentConfig that a reference points at; "" for no reference."""
    target = find_reference(ref)
    return (
        "" if target is None else str(get_typed(snapshot, target, AGENT_CONFIG).payload["command"])
    )


class Commands:
    """A cache of the commands of a thread's agents."""

    __slots__ = ("_known", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[NodeHash | None, str] = {}

    def describe(self, ref: Any) -> str:
        """Return the command that a reference points at, or all settings if there are more."""
        target = find_reference(ref)
        if target is None:
            return ""
        agent = get_typed(self._snapshot, target, AGENT_CONFIG).payload
        return self.get(ref) if len(agent) == 1 else json.dumps(agent, ensure_ascii=False)

    def get(self, ref: Any) -> str:
        """Return the command that a reference points at, as ``get_command``."""
        target = find_reference(ref)
        if target not in self._known:
            self._known[target] = get_command(self._snapshot, ref)
        return self._known[target]


# Tries at a node that is verified, as documents: for `thread show`, and for whose turn it is.


def view_try(store: Store, place: FlowPlace | None, present: ThreadState) -> dict[str, Any] | None:
    """Return which try the turn at *place* belongs to; None if nobody verifies its work.

    ``of`` is how many there are, and absent if that cannot be told now. A higher number means that
    all are used up.
    """
    if place is None or place.node.verifier is None:
        return None
    tried = _find_try(place, present)
    number = present.begin_tries(str(place.at)).failures + 1 if tried is None else tried.number
    view = {"number": number, "node": place.node.label, "at": str(place.at), "turn": place.role}
    with suppress(UwfError):
        view["of"] = find_work_retries(store.config, place) + 1
    return view


def view_tried(
    store: Store, snapshot: Snapshot, place: FlowPlace, present: ThreadState
) -> dict[str, Any]:
    """Return what the context of a turn at *place* has of its try; empty if it is not verified.

    Raises:
        Refused, LimitHit: a template of the input of the work cannot be filled.
    """
    view = view_try(store, place, present)
    if view is None:
        return {}
    if place.is_verdict:
        verified = {"role": place.node.agent, "input": fill_work_input(snapshot, present, place)}
        checked = _find_checked(snapshot, present)
        verified |= {"checked": checked} if checked else {}
        return {"try": {**view, "verifies": verified}}
    verdict = find_verdict(snapshot, present)
    return {"try": view if verdict is None else {**view, "rejected": _view(snapshot, verdict)}}


def _find_checked(snapshot: Snapshot, present: ThreadState) -> str:
    """Return what the checks of the work printed that is to be judged: the newest step."""
    work = snapshot.get_head_node()
    role = get_workflow(snapshot, present.workflow).roles.get(work.payload.get("role"))
    checks = () if role is None else get_role(snapshot, role).checks
    return find_outputs(get_text(snapshot, work.payload.get("stderr")), checks) if checks else ""


def _find_try(place: FlowPlace, present: ThreadState) -> Any:
    tried = present.tried
    return tried if tried is not None and tried.at == str(place.at) else None


def _view(snapshot: Snapshot, verdict: Node) -> dict[str, Any]:
    meta = verdict.payload["meta"]
    fields = meta if isinstance(meta, dict) else {}
    return {
        "role": verdict.payload["role"],
        "issues": list_issues(fields),
        "suggestion": find_suggestion(fields),
        "meta": meta,
        "content": get_text(snapshot, verdict.payload.get("content")),
        "hash": verdict.hash,
    }


# How often a step failed before it succeeded, from the commits of its thread.


def count_failed_attempts(store: Store, step: Snapshot) -> int:
    """Return how many attempts failed before the step of a commit.

    Raises:
        StoreDamaged: the commit before it cannot be read.
    """
    return read_snapshot(store, step.commit.parents[0]).get_present().attempts


def count_failed_by_role(store: Store, tip: Oid, *, most: int) -> dict[str, int]:
    """Return how many attempts of each role failed; nothing of a thread with *most* commits.

    That costs a look at each of its commits. Those before damage are not counted.
    """
    counts: Counter[str] = Counter()
    with suppress(StoreDamaged):
        for number, snapshot in enumerate(walk_history(store, tip, through_forks=True), 1):
            if number == most:
                return {}
            if snapshot.record.event == "attempt" and snapshot.record.role is not None:
                counts[snapshot.record.role] += 1
    return dict(counts)


def count_all_failed_attempts(
    store: Store, tip: Oid, *, after: NodeHash | None = None
) -> dict[NodeHash, int]:
    """Return how many attempts failed before each step of a thread, by the step's node.

    With *after*, only of the steps after that one. Steps without failed attempts are left out, and
    so are attempts before a poke.

    Raises:
        StoreDamaged: the history cannot be read.
    """
    counts: dict[NodeHash, int] = {}
    seen: set[NodeHash] = set()
    step: NodeHash | None = None
    for snapshot in walk_history(store, tip, through_forks=True):
        event = snapshot.record.event
        if event in STEPS:
            node = snapshot.record.node
            if node == after:
                break
            # After a poke an equal step has the same node; the newest is the one that counts.
            step = None if node in seen else node
            seen.add(node)
        elif event == "poke":
            step = None
        elif event == "attempt" and step is not None:
            counts[step] = counts.get(step, 0) + 1
    return counts


# The question of a thread that waits for a person: its document, and its first line for lists.
#
# It has what an agent of the role would get, for a reader who has not seen the thread.


def view_waiting(store: Store, snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return the role that a thread waits for and since when; None if it does not wait.

    If an agent hit a usage limit, also until when.

    Raises:
        StoreDamaged, BadMessage: the history is broken where the wait began.
    """
    waiting = present.waiting
    if waiting is None:
        return None
    view: dict[str, Any] = {"role": waiting.role, "since": find_since(store, snapshot)}
    if waiting.until is not None:
        view["until"] = waiting.until
    return view


def find_since(store: Store, snapshot: Snapshot) -> int:
    """Return when the present turn began to wait, in milliseconds since 1970.

    A control event since then (a patch, a pause) does not restart it.

    Raises:
        StoreDamaged, BadMessage: the history is broken there.
    """
    begun = snapshot
    for each in walk_history(store, snapshot.commit.oid):
        begun = each
        if each.record.event not in CONTROLS:
            break
    return begun.commit.time_s * 1000


def view_question(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return the question to a person; None if the thread waits for none.

    Raises:
        MissingNode, DamagedNode, NotAWorkflow: the role cannot be read.
    """
    if present.waiting is None or present.waiting.until is not None:
        return None
    name = present.waiting.role
    thread = snapshot.record.thread
    view: dict[str, Any] = {"role": name}
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = find_role(snapshot, workflow, name)
    if role is not None:
        schema = get_output_schema(snapshot, workflow, name)
        view |= {
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "extractPrompt": role.extract_prompt,
            "fields": list_questions(schema),
            "outputSchema": schema,
        }
    view["task"] = snapshot.get_start().payload["prompt"]
    view["lastStep"] = _view_newest(snapshot)
    view["command"] = f"uwf thread answer {thread}"
    return view


def first_question_line(snapshot: Snapshot, present: ThreadState) -> str | None:
    """Return the first line of the question to a person; None if the thread waits for none."""
    if present.waiting is None or present.waiting.until is not None:
        return None
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = find_role(snapshot, workflow, present.waiting.role)
    if role is None:
        return ""
    return first_line(role.system_prompt) or first_line(role.description)


def find_role(snapshot: Snapshot, workflow: Workflow, name: str) -> Role | None:
    """Return the role *name*; None if the workflow has none, as after an amend."""
    node: NodeHash | None = workflow.roles.get(name)
    return None if node is None else parse_role(snapshot.get_node(node))


def _view_newest(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the newest step in one line; `thread show` has all of it."""
    if not snapshot.record.depth:
        return None
    payload = snapshot.get_head_node().payload
    content = find_reference(payload.get("content"))
    text = "" if content is None else str(snapshot.get_node(content).payload)
    return {
        "hash": snapshot.record.node,
        "role": payload["role"],
        "said": describe_step(payload["meta"], text),
    }
