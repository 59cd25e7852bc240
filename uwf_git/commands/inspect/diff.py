"""`uwf thread diff`: the differences between two threads from their last common step on."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from uwf_git.commands.inspect.step_view import Commands, get_text
from uwf_git.commands.inspect.story import count_failed
from uwf_git.engine.diff import align, diff_texts, diff_values, render_path
from uwf_git.model.builtin import STEP
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, get_head, resolve_thread
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, check_type, read_snapshot


class Divergence(NamedTuple):
    one: list[Node]
    """The StepNodes that only the first thread has, oldest first."""

    other: list[Node]

    node: NodeHash | None
    """The newest node that both threads have, possibly the StartNode; None: nothing is shared."""

    depth: int
    """How many steps both have."""


def part_chains(one: Snapshot, other: Snapshot) -> Divergence:
    """Walk the chains of two threads back to their newest common node."""
    chains = (one.walk_chain(), other.walk_chain())
    depths = [one.record.depth, other.record.depth]
    parts: tuple[list[Node], list[Node]] = ([], [])
    newest = [next(chain) for chain in chains]
    while newest[0].hash != newest[1].hash:
        # Walk the longer chain, or both if they have the same length.
        going = [side for side in (0, 1) if depths[side] == max(depths)]
        if any(newest[side].type != STEP for side in going):
            going = [side for side in (0, 1) if newest[side].type == STEP]
        if not going:
            return _parted(parts, None, 0)
        for side in going:
            parts[side].append(newest[side])
            newest[side] = next(chains[side])
            depths[side] -= 1
    return _parted(parts, newest[0].hash, max(depths[0], 0))


def _parted(parts: tuple[list[Node], list[Node]], node: NodeHash | None, depth: int) -> Divergence:
    for part in parts:
        part.reverse()
    return Divergence(parts[0], parts[1], node, depth)


def find_shared_commit(objects: ObjectStore, one: Oid, other: Oid) -> Oid | None:
    """Find the newest commit that both first-parent histories have."""
    walks = (_walk(objects, one), _walk(objects, other))
    seen: tuple[set[Oid], set[Oid]] = (set(), set())
    # Both walks advance in turn, so that the cost is the distance to the common commit.
    open_sides = [0, 1]
    while open_sides:
        for side in tuple(open_sides):
            oid = next(walks[side], None)
            if oid is None:
                open_sides.remove(side)
                continue
            if oid in seen[1 - side]:
                return oid
            seen[side].add(oid)
    return None


def _walk(objects: ObjectStore, tip: Oid) -> Iterator[Oid]:
    oid: Oid | None = tip
    while oid is not None:
        yield oid
        oid = next(iter(read_commit(objects, oid).parents), None)


class _Side(NamedTuple):
    name: str
    head: Head
    tip: Snapshot
    commands: Commands
    steps: list[Node]
    """The steps that only this thread has, oldest first."""

    first: int

    failed: dict[NodeHash, int]
    """How many attempts failed before a step."""

    def find(self, at: int | None) -> "_Turn | None":
        if at is None:
            return None
        return _Turn(self, self.first + at, check_type(self.steps[at], STEP))


class _Turn(NamedTuple):
    side: _Side
    number: int
    node: Node

    @property
    def content(self) -> str:
        return get_text(self.side.tip, self.node.payload.get("content"))

    def view(self) -> dict[str, Any]:
        payload = self.node.payload
        return {
            "number": self.number,
            "hash": self.node.hash,
            "agent": self.side.commands.get(payload.get("agent")),
            "timestamp": self.node.timestamp,
            "failedAttempts": self.side.failed.get(self.node.hash, 0),
        }


def diff_threads(store: Store, one: str, other: str) -> dict[str, Any]:
    """Compare two threads, active or archived; from their starts if they share no step."""
    heads = [get_head(store, resolve_thread(store, text)) for text in (one, other)]
    tips = [read_snapshot(store, head.commit) for head in heads]
    parted = part_chains(tips[0], tips[1])
    first = parted.depth + 1
    failed = [_count_failed(store, head, parted.node) for head in heads]
    a = _Side("a", heads[0], tips[0], Commands(tips[0]), parted.one, first, failed[0])
    b = _Side("b", heads[1], tips[1], Commands(tips[1]), parted.other, first, failed[1])
    states = [dict(tip.get_present().state) for tip in tips]
    return {
        "a": _view_thread(a),
        "b": _view_thread(b),
        "common": _view_common(store, a, b, parted),
        "prompt": _diff_prompts(a, b),
        "steps": list(_view_steps(a, b)),
        "state": _view_changes(states[0], states[1]),
    }


def _count_failed(store: Store, head: Head, after: NodeHash | None) -> dict[NodeHash, int]:
    """Return how many attempts failed before each step after the step *after*, by its node."""
    steps = count_failed(walk_history(store, head.commit, through_forks=True))
    later = list(takewhile(lambda each: each[0].record.node != after, steps))
    # After a poke an equal step has the same node; the newest, here the last, counts.
    return {step.record.node: count for step, count in later[::-1]}


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


def _view_common(store: Store, a: _Side, b: _Side, parted: Divergence) -> dict[str, Any] | None:
    """Return the newest common step, and the common commit if there is one; None for no step."""
    if parted.node is None:
        return None
    node = a.tip.get_node(parted.node)
    commit = find_shared_commit(store.objects, a.head.commit, b.head.commit)
    # Equal steps do not make a shared history: two threads may be the same by chance.
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
