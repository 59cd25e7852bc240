"""`uwf thread list`: the threads of a store, newest first.

Owns: which rows, and what is in one. Always true: a row costs one commit to read; a damaged
thread is one row that says so, never a failed list.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import find_head, list_threads
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

DAMAGED = "damaged"


class ListRequest(NamedTuple):
    """Which threads are asked for."""

    archived: bool = False
    """Whether ended ones are among them (``--all``)."""

    workflow: str | None = None
    """Only those of the workflow of this name or hash."""

    status: str | None = None
    limit: int | None = None


def list_rows(store: Store, request: ListRequest) -> list[dict[str, Any]]:
    """Give a row for each thread that is asked for, newest first."""
    rows: list[dict[str, Any]] = []
    for thread in _threads(store, request):
        if request.limit is not None and len(rows) >= request.limit:
            break
        row = _row(store, thread)
        if row is not None and _is_asked_for(row, request):
            rows.append(row)
    return rows


def _threads(store: Store, request: ListRequest) -> Iterator[ThreadId]:
    active = list_threads(store, archived=False)
    ended = list_threads(store, archived=True) if request.archived else []
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
    except StoreDamaged as error:
        return {"thread": thread, "status": DAMAGED, "error": error.message}
    record = snapshot.record
    return {
        "thread": thread,
        "status": record.status,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "depth": record.depth,
        "head": record.node,
        "lastUpdateTime": snapshot.commit.time_s * 1000,
        "said": snapshot.subject,
    }


def _is_asked_for(row: dict[str, Any], request: ListRequest) -> bool:
    if request.status is not None and row["status"] != request.status:
        return False
    if request.workflow is None:
        return True
    return request.workflow in {row.get("workflow"), row.get("workflowName")}
