"""Branches of a thread as people look at them: what each is doing, and what holds the thread up.

A branch that has not begun here is ``ready``. One that cannot be read is a row that says so.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from uwf_git.commands.agent_run.activity import RUNNING, may_be_active
from uwf_git.commands.inspect.standing import HOLDING, name_damage, sort_counts
from uwf_git.commands.inspect.step_view import view_failure
from uwf_git.commands.split.ending import label_branch
from uwf_git.commands.split.family import Branch, list_branches
from uwf_git.commands.split.plan import Container, find_container
from uwf_git.commands.turn.next_move import find_next_move
from uwf_git.commands.turn.spending import find_limit
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, TransitionRecord
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, get_head
from uwf_git.store.threads.lock import find_driver, find_holder
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_MOST_ASKED = 16


def find_status(store: Store, record: TransitionRecord) -> str:
    """Return the status to show of a thread: ``running`` while a process works on it."""
    thread = record.thread
    if record.status not in {"ready", "waiting"} or not may_be_active(store, thread):
        return record.status
    if record.status == "ready" and (find_holder(store, thread) or find_driver(store, thread)):
        return RUNNING
    from uwf_git.commands.agent_run.running import (  # noqa: PLC0415 (costs 20 ms, and few get here)
        find_running,
        show_status,
    )

    return show_status(record.status, find_running(store, thread))


def view_branches(store: Store, tip: Snapshot) -> list[dict[str, Any]]:
    """Return the documents of the branches that the thread at *tip* has now, in order.

    One that has split itself has its own ``branches``.
    """
    found = tip.get_present().split
    if found is None:
        return []
    container = find_container(tip, found.at)
    return [_view_branch(store, container, branch) for branch in list_branches(store, tip)]


def _view_branch(store: Store, container: Container, branch: Branch) -> dict[str, Any]:
    view: dict[str, Any] = {
        "number": branch.number,
        "label": label_branch(container, branch.number),
        "thread": branch.child.thread,
    }
    if branch.head is None:
        return {**view, "status": "ready", "depth": 0, "said": None}
    try:
        snapshot = read_snapshot(store, branch.head.commit)
        record = snapshot.record
        error = view_failure(snapshot, snapshot.get_present())
        inner = view_branches(store, snapshot)
    except StoreDamaged as damage:
        return {**view, "status": name_damage(damage), "error": damage.message}
    view |= {
        "status": find_status(store, record),
        "depth": record.depth,
        "said": snapshot.subject,
    }
    if error is not None:
        view["error"] = error["message"]
    return {**view, "branches": inner} if inner else view


def count_branches(store: Store, tip: Snapshot) -> dict[str, int]:
    """Count the branches below *tip* by their status; of one that has split, its own instead."""
    counts = Counter(row["status"] for row in _walk(view_branches(store, tip)))
    return sort_counts(counts)


def _walk_all(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        yield from _walk_all(row.get("branches", []))


def _walk(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield from _walk(row["branches"]) if "branches" in row else (row,)


def find_held_by(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what keeps the thread at *tip* from going on.

    That is a thread around it, a branch that needs somebody, a limit, or branches that cannot be
    joined. *branches* are those of ``view_branches``.
    """
    held: list[dict[str, Any]] = [
        {name: row[name] for name in ("thread", "label", "status", "error") if name in row}
        for row in _walk_all(branches)
        if row["status"] in HOLDING
    ]
    return [
        *_find_trunks(store, tip),
        *held,
        *_find_undecided(store, branches),
        *_find_limit(store, tip, branches),
        *_find_conflicts(store, tip, branches),
    ]


def _find_trunks(store: Store, tip: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield the threads around a branch that let it take no step."""
    if tip.record.status in ENDED:
        return
    thread = tip.get_trunk()
    while thread is not None:
        head = find_head(store, thread)
        if head is None:
            return
        snapshot = read_snapshot(store, head.commit)
        if snapshot.record.status in {"paused", *ENDED}:
            yield {"thread": thread, "status": snapshot.record.status}
        thread = snapshot.get_trunk()


def _find_conflicts(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield why branches that have all ended cannot be joined, of the thread and of those below."""
    if tip.get_present().split is None:
        return
    from uwf_git.commands.turn.joining import (  # noqa: PLC0415 (few threads split)
        find_join_problem,
    )

    split = [row["thread"] for row in _walk_all(branches) if "branches" in row]
    below = (read_snapshot(store, get_head(store, each).commit) for each in split)
    for each in (tip, *below):
        # A branch that cannot be read says so itself.
        problem = None
        with suppress(StoreDamaged):
            problem = find_join_problem(store, each)
        if problem is not None:
            thread = problem.facts.get("thread", each.record.thread)
            status = read_snapshot(store, get_head(store, thread).commit).record.status
            yield _view_problem(thread, status, problem)


def _find_undecided(store: Store, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the branches whose next step an expression without an answer keeps from beginning.

    Each is asked, so not while something is at work, and only the first of many.
    """
    leaves = list(_walk(rows))
    if any(row["status"] == RUNNING for row in leaves):
        return
    for row in [row for row in leaves if row["status"] == "ready"][:_MOST_ASKED]:
        head = find_head(store, row["thread"])
        problem = (
            None if head is None else find_next_move(read_snapshot(store, head.commit)).problem
        )
        if problem is not None:
            yield {"label": row["label"], **_view_problem(row["thread"], "ready", problem)}


def _find_limit(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the limit that lets none of the *branches* take a step, or the thread if it is one."""
    statuses = {row["status"] for row in _walk(branches)} or {tip.record.status}
    limit = None
    # What a branch that cannot be read has spent is not known.
    with suppress(StoreDamaged):
        limit = None if statuses <= ENDED else find_limit(store, tip, tip.get_present())
    if limit is not None:
        yield _view_problem(limit.facts["thread"], "limit", limit)


def _view_problem(thread: ThreadId, status: str, problem: UwfError) -> dict[str, Any]:
    view = {"thread": thread, "status": status, "error": problem.message}
    return view if problem.hint is None else {**view, "hint": problem.hint}
