"""`uwf thread rm`: an archived thread is removed from this store.

Owns: the order check, local files, refs; what is told of that which stays.
Knows nothing of: whoever is asked first. Always true: its archive ref goes last, so that a
removal that was cut short leaves an archived thread, which can be removed again; no commit is
touched: git has them until gc, and for as long as a fork shares them; no remote is asked, so one
that has the thread gives it back at the next fetch.
"""

import os
import shutil
from collections.abc import Iterable
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.play_agent import ALIVE
from uwf_git.commands.thread_list import DAMAGED
from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.file_lock import is_held
from uwf_git.store.heads import ACTIVE, ARCHIVE, Head, HeadMoved, get_head, resolve_thread
from uwf_git.store.kept import let_go, list_kept
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import Remote, list_remotes
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import forget_lock, lock_thread
from uwf_git.store.thread_log import forget_log
from uwf_git.store.thread_sides import read_sides
from uwf_git.store.tracking import track
from uwf_git.store.workdirs import forget_workdir


class ThreadStillActive(Refused):
    """The thread has not ended."""

    code = "thread-still-active"

    def __init__(self, thread: ThreadId, *, is_damaged: bool) -> None:
        damaged = ", damaged" if is_damaged else ""
        ref = ACTIVE + thread
        super().__init__(
            f"thread {thread} is active{damaged}, and only archived threads can be removed",
            # What is damaged cannot be ended either.
            hint=f"`git update-ref -d {ref}` in the store gives it up as it is"
            if is_damaged
            else f"end it first: `uwf thread kill {thread} -m …`",
            thread=thread,
        )


class AgentStillRuns(Conflict):
    """The thread has ended, and an agent that was begun for it has not."""

    code = "agent-still-runs"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"an agent of thread {thread} is still at work",
            hint="try again when it has ended",
            thread=thread,
        )


class Removal(NamedTuple):
    """An archived thread that is to be removed."""

    thread: ThreadId
    commit: Oid
    """Where it ended."""

    status: str
    """How it ended; `damaged` if that cannot be read."""

    workflow_name: str | None = None
    depth: int | None = None


class Removed(NamedTuple):
    """A thread that was removed."""

    removal: Removal
    remotes: list[str]
    """Those that had it when they were last seen: the next fetch brings it back."""


def plan_removals(store: Store, texts: Iterable[str]) -> list[Removal]:
    """Find the threads that *texts* mean, each once; nothing is removed yet.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: one is not meant.
        ThreadStillActive: one has not ended.
    """
    threads = dict.fromkeys(resolve_thread(store, text) for text in texts)
    return [_plan(store, _get_archived(store, thread)) for thread in threads]


def _get_archived(store: Store, thread: ThreadId) -> Head:
    head = get_head(store, thread)
    if not head.archived:
        raise ThreadStillActive(thread, is_damaged=_plan(store, head).status == DAMAGED)
    return head


def _plan(store: Store, head: Head) -> Removal:
    try:
        record = read_snapshot(store, head.commit).record
    except StoreDamaged:
        # One more reason to be rid of it.
        return Removal(head.thread, head.commit, DAMAGED)
    return Removal(head.thread, head.commit, record.status, record.workflow_name, record.depth)


def remove_thread(store: Store, caller: Caller, removal: Removal) -> Removed:
    """Remove an archived thread: its refs here, what was last seen of it elsewhere, its files.

    Raises:
        NoSuchThread: somebody was faster.
        ThreadBusy, AgentStillRuns: somebody is at work on it.
        HeadMoved: it is no longer what was planned to be removed.
        RefLocked: another git process holds one of its refs.
    """
    thread = removal.thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        if _get_archived(store, thread).commit != removal.commit:
            raise HeadMoved(thread)
        _check_no_agent_runs(store, thread)
        _remove_files(store, thread)
        # Without its archive ref it would be an active thread again.
        active = store.refs.find(ACTIVE + thread)
        if active is not None:
            store.refs.delete(ACTIVE + thread, seen=active)
        for commit in list_kept(store, thread):
            let_go(store, thread, commit)
        remotes = [each for each in list_remotes(store.config) if _forget(store, each, thread)]
        if not store.refs.delete(ARCHIVE + thread, seen=removal.commit):
            raise HeadMoved(thread)
        forget_lock(store, thread)
    return Removed(removal, [remote.name for remote in remotes])


def _check_no_agent_runs(store: Store, thread: ThreadId) -> None:
    for path in _list_files(store, thread):
        if path.endswith(ALIVE) and is_held(path):
            raise AgentStillRuns(thread)


def _list_files(store: Store, thread: ThreadId) -> list[str]:
    if not store.is_kept:
        return []
    folder = store.local_path("run", thread)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def _remove_files(store: Store, thread: ThreadId) -> None:
    if store.is_kept:
        shutil.rmtree(store.local_path("run", thread), ignore_errors=True)
    forget_log(store, thread)
    forget_workdir(store, thread)


def _forget(store: Store, remote: Remote, thread: ThreadId) -> bool:
    """Forget what was last seen of the thread at *remote*, and tell whether it was seen there."""
    sides = read_sides(store, remote, thread)
    track(store, remote, f"threads/{thread}", seen=sides.there_active, to=None)
    track(store, remote, f"archive/{thread}", seen=sides.there_archived, to=None)
    return sides.there_active is not None or sides.there_archived is not None
