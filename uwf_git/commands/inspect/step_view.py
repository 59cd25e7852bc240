"""Views of steps: step and attempt nodes, and failed attempts, as documents."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uwf_git.engine.flow_state import describe_rejection
from uwf_git.engine.lazy_list import LazyList, lazy_list
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, STEP, find_reference
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.history import StepChain, walk_history
from uwf_git.store.threads.snapshot import Snapshot, check_type, get_typed

# Step views: step and attempt nodes as documents.
#
# Keys are only ever added. A document is never the stored payload, so that the format may change.

_COPIED = ("startedAt", "durationMs", "usage", "session", "rung", "state")
_REFERRED = {"prompt": "prompt", "trace": "trace", "log": "stderr", "execContext": "execContext"}
"""The nodes of a step that a view only names; an attempt's log is in its view."""


def view_step(snapshot: Snapshot, step: Node, commands: "Commands | None" = None) -> dict[str, Any]:
    """Return the document of a StepNode; *snapshot* holds the nodes that it refers to."""
    payload = check_type(step, STEP).payload
    view: dict[str, Any] = {
        "hash": step.hash,
        "role": payload["role"],
        "meta": payload["meta"],
        "content": get_text(snapshot, payload.get("content")),
        "agent": (commands or Commands(snapshot)).get(payload.get("agent")),
        "timestamp": step.timestamp,
    }
    view |= {name: payload[name] for name in _COPIED if name in payload}
    return view | _name_referred(payload, _REFERRED)


def _name_referred(payload: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    # Only the names: a prompt may have a hundred pages, and `json-cas get` prints it.
    present = [name for name in names if _REFERRED[name] in payload]
    return {name: find_reference(payload[_REFERRED[name]]) for name in present}


def view_steps(snapshot: Snapshot, before: Sequence[int] = ()) -> LazyList[dict[str, Any]]:
    """Return the documents of all steps, *before* included, oldest first, each read on access."""
    commands, chain = Commands(snapshot), StepChain(snapshot, before)
    return lazy_list(len(chain), lambda place: view_step(snapshot, chain.get(place), commands))


def view_attempt(snapshot: Snapshot, name: NodeHash | None) -> dict[str, Any] | None:
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
    if attempt is None:
        return None
    error: dict[str, Any] = get_typed(snapshot, attempt, ATTEMPT).payload["error"]
    return {"kind": error["kind"], "message": error["message"]}


def view_failure(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    verdict = find_verdict(snapshot, present) if present.last_attempt is None else None
    if verdict is None:
        return view_error(snapshot, present.last_attempt)
    told = describe_rejection(verdict.payload["role"], verdict.payload["meta"])
    return {"kind": "rejected", "message": told}


def find_verdict(snapshot: Snapshot, present: ThreadState) -> Node | None:
    """Return the verdict that ended the last try, unless the next try is done."""
    tried = present.tried
    if tried is None or tried.is_verdict or tried.reason is None:
        return None
    node = snapshot.get_node(tried.reason)
    return node if node.type == STEP else None


def get_text(snapshot: Snapshot, ref: Any) -> str:
    target = find_reference(ref)
    return "" if target is None else str(snapshot.get_node(target).payload)


def get_command(snapshot: Snapshot, ref: Any) -> str:
    """Return the command of the AgentConfig that a reference points at; "" for no reference."""
    return Commands(snapshot).get(ref)


class Commands:
    __slots__ = ("_known", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[NodeHash, str] = {}

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
        if target is None:
            return ""
        if target not in self._known:
            config = get_typed(self._snapshot, target, AGENT_CONFIG)
            self._known[target] = str(config.payload["command"])
        return self._known[target]


# How often a step failed before it succeeded, from the commits of its thread.


def count_failed_by_role(store: Store, tip: Oid, *, most: int) -> dict[str, int]:
    """Count the failed attempts of each role; {} for a thread of *most* commits."""
    counts: Counter[str] = Counter()
    with suppress(StoreDamaged):
        for number, snapshot in enumerate(walk_history(store, tip, through_forks=True), 1):
            if number == most:
                return {}
            if snapshot.record.event == "attempt" and snapshot.record.role is not None:
                counts[snapshot.record.role] += 1
    return dict(counts)
