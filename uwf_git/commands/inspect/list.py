"""`uwf thread list`: the threads of a store, newest first.

A row costs one commit to read, and one for each branch that the thread has now. A damaged thread
is one row that says so. Whether one is ``running`` is checked only if it has run files or locks.
"""

import contextlib
from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice, takewhile
from typing import Any, NamedTuple

from uwf_git.commands.inspect.branches import count_branches, find_status
from uwf_git.commands.inspect.standing import name_damage
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId, is_thread_id, read_time_ms
from uwf_git.model.thread import ENDED, FROM_TASK_WORDS, TASK_WORDS
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.tracking import RemoteHeads
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    ACTIVE,
    find_head,
    list_threads,
    parse_thread_id,
    resolve_thread,
)
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_LONG_MS = 7 * 24 * 3600 * 1000


class ListRequest(NamedTuple):
    """Which threads to list."""

    archived: bool = False
    """Whether to include ended threads (``--all``), whatever *statuses* has."""

    workflow: str | None = None
    """Only those of the workflow of this name or hash."""

    statuses: frozenset[str] = frozenset()
    """Only those with one of these, or of the words of seed 004; empty: any."""

    after_ms: int | None = None
    """Only those that were updated at this time or later, in milliseconds since 1970."""

    before_ms: int | None = None
    """Only those that were updated before this time."""

    offset: int = 0
    """How many rows to skip."""

    parent: str | None = None
    """Only its branches, and those that its agents started, ended ones as well: an id or a prefix.
    """

    branches: bool = False
    """Whether to list branches beside the threads that have split into them.

    With *statuses* or *parent* they are listed anyway, and so is one whose parent is not here.
    """

    limit: int | None = None

    cwd: str | None = None
    """The folder whose project's workflows are known too."""


def list_thread_rows(store: Store, request: ListRequest) -> list[dict[str, Any]]:
    """List the threads that *request* selects, newest first.

    A status that only ended threads have includes the archived ones, and so does a parent.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: the parent is no thread, or several.
        Refused: neither the store, nor one of its threads, nor the project has it.
    """
    statuses = frozenset(FROM_TASK_WORDS.get(each, each) for each in request.statuses)
    request = request._replace(statuses=statuses)
    archived = request.archived or bool(statuses & ENDED)
    if request.parent is not None:
        # A child may be here without its parent, whose whole id is enough.
        known = parse_thread_id(request.parent) or resolve_thread(store, request.parent)
        request, archived = request._replace(parent=known), True
    heads = RemoteHeads(store)
    with_branches = request.branches or bool(statuses) or request.parent is not None
    rows = (
        view_thread_row(store, heads, thread, archived=archived, with_branches=with_branches)
        for thread in _walk_refs(store, archived=archived)
    )
    wanted = (row for row in rows if row is not None and _is_wanted(row, request))
    end = None if request.limit is None else request.offset + request.limit
    found = list(islice(wanted, request.offset, end))
    if not found and request.workflow is not None:
        check_workflow_known(store, request.workflow, request.cwd)
    return found


def list_lately_ended(store: Store, *, after_ms: int, limit: int) -> list[dict[str, Any]]:
    """List the threads that ended at *after_ms* or later, of those that began not long before.

    The others are not looked at: a store may have 100,000 that have ended.
    """
    heads = RemoteHeads(store)
    first_ms = after_ms - _LONG_MS
    threads = takewhile(
        lambda thread: read_time_ms(thread) >= first_ms, list_threads(store, archived=True)
    )
    rows = (view_thread_row(store, heads, thread, with_branches=False) for thread in threads)
    wanted = (row for row in rows if row and row.get("lastUpdateTime", 0) >= after_ms)
    return list(islice(wanted, limit))


def check_workflow_known(store: Store, text: str, cwd: str | None) -> None:
    """Refuse a name or hash that no workflow has: of the store, its threads, or the project.

    Raises:
        Refused: there is none; it names the nearest.
        AmbiguousNode: several hashes begin so.
    """
    heads = RemoteHeads(store)
    rows = (view_thread_row(store, heads, thread) for thread in _walk_refs(store, archived=True))
    if any(row is not None and _is_of(row, text) for row in rows):
        return
    from uwf_git.commands.workflow.find import (  # noqa: PLC0415 (only where nothing was found)
        WorkflowRemoved,
        find_workflow,
    )
    from uwf_git.commands.workflow.local import BadLocalWorkflow  # noqa: PLC0415 (the same)

    # One that was removed, or cannot be read, is known.
    with contextlib.suppress(WorkflowRemoved, BadLocalWorkflow, StoreDamaged):
        find_workflow(store, text, cwd=cwd)


def walk_threads(store: Store, *, archived: bool) -> Iterator[ThreadId]:
    """Yield the active threads, with *archived* also the ended ones, newest first."""
    if archived:
        yield from _walk_refs(store, archived=True)
    else:
        yield from list_threads(store, archived=False)


def _walk_refs(store: Store, *, archived: bool) -> Iterator[ThreadId]:
    """Yield as `walk_threads`, but also ended threads whose active ref a crash has left.

    That saves a look at each thread, for a reader who takes one in any case.
    """
    names = store.refs.names(ACTIVE)
    active = (ThreadId(name) for name in reversed(names) if is_thread_id(name))
    ended = list_threads(store, archived=True) if archived else []
    # Each once: a thread may be archived between the two listings.
    for thread, _again in groupby(merge(active, ended, reverse=True)):
        yield thread


def view_thread_row(
    store: Store,
    heads: RemoteHeads | None,
    thread: ThreadId,
    *,
    archived: bool = True,
    with_branches: bool = True,
) -> dict[str, Any] | None:
    """Return the row of *thread*.

    None if it is gone, has ended and none of *archived*, or is a branch and none *with_branches*.
    Without *heads* it does not say whether the thread has diverged from a remote.
    """
    try:
        head = find_head(store, thread)
        if head is None or (head.archived and not archived):
            return None
        snapshot = read_snapshot(store, head.commit)
        waits = _view_wait(snapshot) if snapshot.record.status == "waiting" else {}
        trunk = snapshot.get_trunk()
        if trunk is not None and not with_branches and find_head(store, trunk) is not None:
            return None
        has_split = snapshot.record.status in {"split", "paused"}
        counts = count_branches(store, snapshot) if has_split else {}
    except StoreDamaged as error:
        return {"thread": thread, "status": name_damage(error), "error": error.message}
    record = snapshot.record
    status = find_status(store, record)
    return {
        "thread": thread,
        "status": status,
        "taskStatus": TASK_WORDS.get(status, status),
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "depth": record.depth,
        "head": record.node,
        "lastUpdateTime": snapshot.commit.time_s * 1000,
        "said": snapshot.subject,
        **({} if record.parent_thread is None else {"parentThread": record.parent_thread}),
        **({} if trunk is None else {"branchOf": trunk}),
        **({"branches": counts} if counts else {}),
        **waits,
        **({} if heads is None else view_divergence(heads, thread, head.commit)),
    }


def view_divergence(heads: RemoteHeads, thread: ThreadId, here: Oid) -> dict[str, Any]:
    """Return the remotes from which *thread*, at *here*, has diverged; empty if from none."""
    found = [each._asdict() for each in heads.find_thread(thread, here)]
    return {"diverged": found} if found else {}


def _view_wait(snapshot: Snapshot) -> dict[str, Any]:
    """Return the role that a thread waits for, and the first line of the question to a person."""
    from uwf_git.commands.inspect.question import first_question_line  # noqa: PLC0415 (few threads wait)

    present = snapshot.get_present()
    if present.waiting is None:
        return {}
    waiting = present.waiting._asdict()
    view = {"waiting": {name: each for name, each in waiting.items() if each is not None}}
    question = first_question_line(snapshot, present)
    return view if question is None else view | {"question": question}


def _is_wanted(row: dict[str, Any], request: ListRequest) -> bool:
    if request.statuses and row["status"] not in request.statuses:
        return False
    if request.parent is not None and row.get("parentThread") != request.parent:
        return False
    if request.workflow is not None and not _is_of(row, request.workflow):
        return False
    return _is_in_time(row.get("lastUpdateTime"), request)


def _is_of(row: dict[str, Any], workflow: str) -> bool:
    return workflow in {row.get("workflow"), row.get("workflowName")}


def _is_in_time(updated_ms: int | None, request: ListRequest) -> bool:
    if request.after_ms is None and request.before_ms is None:
        return True
    if updated_ms is None:
        # The time of a damaged thread is unknown.
        return False
    # git has seconds: a commit in the second of *after_ms* counts as after it.
    after_ms = (request.after_ms or 0) // 1000 * 1000
    return after_ms <= updated_ms and (request.before_ms is None or updated_ms < request.before_ms)
