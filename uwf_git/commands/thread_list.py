"""`uwf thread list`: the threads of a store, newest first.

Owns: which rows, and what is in one. Always true: a row costs one commit to read; a damaged
thread is one row that says so, never a failed list; ``running`` is what could be stepped if nobody
were at it, and is found out only where there are traces of work; what is asked is read only of
threads that wait.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice
from typing import Any, NamedTuple

from uwf_git.commands.work_traces import RUNNING, has_traces
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread import ENDED
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.heads import find_head, list_threads
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import find_driver, find_holder

DAMAGED = "damaged"


class ListRequest(NamedTuple):
    """Which threads are asked for."""

    archived: bool = False
    """Whether ended ones are among them (``--all``), whatever statuses are asked for."""

    workflow: str | None = None
    """Only those of the workflow of this name or hash."""

    statuses: frozenset[str] = frozenset()
    """Only those with one of these; none asks for any."""

    after_ms: int | None = None
    """Only those that were updated then or later, in milliseconds since 1970."""

    before_ms: int | None = None
    """Only those that were updated before."""

    offset: int = 0
    """How many are left out first."""

    limit: int | None = None


def list_rows(store: Store, request: ListRequest) -> list[dict[str, Any]]:
    """Give a row for each thread that is asked for, newest first.

    Whoever asks for a status that only ended threads have asks for the archived ones.
    """
    archived = request.archived or bool(request.statuses & ENDED)
    rows = (_row(store, thread) for thread in walk_threads(store, archived=archived))
    wanted = (row for row in rows if row is not None and _is_asked_for(row, request))
    end = None if request.limit is None else request.offset + request.limit
    return list(islice(wanted, request.offset, end))


def walk_threads(store: Store, *, archived: bool) -> Iterator[ThreadId]:
    """Give the active threads, and the *archived* ones if they are asked for, newest first."""
    active = list_threads(store, archived=False)
    ended = list_threads(store, archived=True) if archived else []
    # Each once: a thread may be archived between the two looks.
    for thread, _again in groupby(merge(active, ended, reverse=True)):
        yield thread


def _row(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    try:
        head = find_head(store, thread)
        if head is None:
            # Somebody removed its ref while the list was made.
            return None
        snapshot = read_snapshot(store, head.commit)
        waits = _view_wait(snapshot) if snapshot.record.status == "waiting" else {}
    except StoreDamaged as error:
        return {"thread": thread, "status": DAMAGED, "error": error.message}
    record = snapshot.record
    return {
        "thread": thread,
        "status": _status(store, record),
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "depth": record.depth,
        "head": record.node,
        "lastUpdateTime": snapshot.commit.time_s * 1000,
        "said": snapshot.subject,
        **waits,
    }


def _view_wait(snapshot: Snapshot) -> dict[str, Any]:
    """Tell whose turn a thread waits for, and the first line of what a person is asked."""
    from uwf_git.commands.question import tell_question  # noqa: PLC0415 (few threads wait)

    present = snapshot.get_present()
    if present.waiting is None:
        return {}
    role, until = present.waiting
    view: dict[str, Any] = {"waiting": {"role": role} | ({} if until is None else {"until": until})}
    question = tell_question(snapshot, present)
    return view if question is None else view | {"question": question}


def _status(store: Store, record: TransitionRecord) -> str:
    thread = record.thread
    if record.status not in {"ready", "waiting"} or not has_traces(store, thread):
        return record.status
    if record.status == "ready" and (find_holder(store, thread) or find_driver(store, thread)):
        return RUNNING
    from uwf_git.commands.running import (  # noqa: PLC0415 (costs 20 ms, and few get here)
        find_running,
        show_status,
    )

    return show_status(record.status, find_running(store, thread))


def _is_asked_for(row: dict[str, Any], request: ListRequest) -> bool:
    if request.statuses and row["status"] not in request.statuses:
        return False
    if request.workflow is not None and request.workflow not in {
        row.get("workflow"),
        row.get("workflowName"),
    }:
        return False
    return _is_in_time(row.get("lastUpdateTime"), request)


def _is_in_time(updated_ms: int | None, request: ListRequest) -> bool:
    if request.after_ms is None and request.before_ms is None:
        return True
    if updated_ms is None:
        # Nobody can tell when what is damaged was written.
        return False
    # git counts in seconds: what was written in the second of a moment counts as after it.
    after_ms = (request.after_ms or 0) // 1000 * 1000
    return after_ms <= updated_ms and (request.before_ms is None or updated_ms < request.before_ms)
