"""`uwf thread diff`: what differs between two threads, from their common step on.

Owns: the document that says it: which steps belong together, and what is told of each.
Knows nothing of: how differences are found (engine/), how they are shown.
Always true: it reads, and changes nothing; nothing is left out of the document.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from uwf_git.commands.shared_step import Parted, find_shared_commit, part_chains
from uwf_git.commands.step_view import Commands, get_text
from uwf_git.commands.typed_node import check_type
from uwf_git.engine.alignment import align
from uwf_git.engine.structural_diff import diff_values, render_path
from uwf_git.engine.text_diff import diff_texts
from uwf_git.model.builtin import STEP
from uwf_git.model.node import Node
from uwf_git.store.heads import Head, get_head, resolve_thread
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store


class _Side(NamedTuple):
    """One of the two threads."""

    name: str
    head: Head
    tip: Snapshot
    commands: Commands
    steps: list[Node]
    """Those that only this one has, oldest first."""

    first: int
    """The number of the first of them."""

    def find(self, at: int | None) -> "_Turn | None":
        """Give a step by its place among them; None for no place."""
        if at is None:
            return None
        return _Turn(self, self.first + at, check_type(self.steps[at], STEP))


class _Turn(NamedTuple):
    """One step of one of them."""

    side: _Side
    number: int
    node: Node

    @property
    def content(self) -> str:
        return get_text(self.side.tip, self.node.payload.get("content"))

    def view(self) -> dict[str, Any]:
        """Give what tells which step it is."""
        payload = self.node.payload
        return {
            "number": self.number,
            "hash": self.node.hash,
            "agent": self.side.commands.get(payload.get("agent")),
            "timestamp": self.node.timestamp,
        }


def diff_threads(store: Store, one: str, other: str) -> dict[str, Any]:
    """Give what differs between the threads that *one* and *other* mean, active or archived.

    Threads that share no step are compared from their starts.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: one of them is not meant.
        StoreDamaged: one of them cannot be read.
    """
    heads = [get_head(store, resolve_thread(store, text)) for text in (one, other)]
    tips = [read_snapshot(store, head.commit) for head in heads]
    parted = part_chains(tips[0], tips[1])
    first = parted.depth + 1
    a = _Side("a", heads[0], tips[0], Commands(tips[0]), parted.one, first)
    b = _Side("b", heads[1], tips[1], Commands(tips[1]), parted.other, first)
    states = [dict(tip.get_present().state) for tip in tips]
    return {
        "a": _view_thread(a),
        "b": _view_thread(b),
        "common": _view_common(store, a, b, parted),
        "prompt": _diff_prompts(a, b),
        "steps": list(_view_steps(a, b)),
        "state": _view_changes(states[0], states[1]),
    }


def _view_thread(side: _Side) -> dict[str, Any]:
    record = side.tip.record
    return {
        "thread": side.head.thread,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "status": record.status,
        "depth": record.depth,
        "head": record.node,
        "commit": side.head.commit,
    }


def _view_common(store: Store, a: _Side, b: _Side, parted: Parted) -> dict[str, Any] | None:
    """Give up to where they are the same, and whether that is one history; None if nowhere."""
    if parted.node is None:
        return None
    node = a.tip.get_node(parted.node)
    commit = find_shared_commit(store.objects, a.head.commit, b.head.commit)
    # Two threads that say the same from the start may still have nothing to do with each other.
    thread = None if commit is None else read_snapshot(store, commit).record.thread
    return {
        "depth": parted.depth,
        "hash": parted.node,
        "role": node.payload["role"] if node.type == STEP else None,
        "thread": thread,
        "commit": commit,
    }


def _diff_prompts(a: _Side, b: _Side) -> str | None:
    prompts = [side.tip.get_start().payload["prompt"] for side in (a, b)]
    return diff_texts(prompts[0], prompts[1]) or None


def _view_steps(a: _Side, b: _Side) -> Iterator[dict[str, Any]]:
    roles = [[check_type(step, STEP).payload["role"] for step in side.steps] for side in (a, b)]
    for pair in align(roles[0], roles[1]):
        turns = [turn for turn in (a.find(pair.one), b.find(pair.other)) if turn is not None]
        yield _view_alone(turns[0]) if len(turns) == 1 else _view_both(turns[0], turns[1])


def _view_alone(turn: _Turn) -> dict[str, Any]:
    payload = turn.node.payload
    view = {**turn.view(), "meta": payload["meta"], "content": turn.content}
    return {"in": turn.side.name, "role": payload["role"], turn.side.name: view}


def _view_both(one: _Turn, other: _Turn) -> dict[str, Any]:
    return {
        "in": "both",
        "role": one.node.payload["role"],
        "a": one.view(),
        "b": other.view(),
        "meta": _view_changes(one.node.payload["meta"], other.node.payload["meta"]),
        "content": diff_texts(one.content, other.content) or None,
    }


def _view_changes(one: Any, other: Any) -> list[dict[str, Any]]:
    views = []
    for change in diff_values(one, other):
        view = {"kind": change.kind, "path": render_path(change.path)}
        if change.kind != "added":
            view["before"] = change.before
        if change.kind != "removed":
            view["after"] = change.after
        views.append(view)
    return views
