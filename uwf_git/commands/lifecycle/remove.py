"""`uwf thread rm`: remove an archived thread from this store.

The archive ref goes last: a removal that was cut short leaves an archived thread. Commits stay
until git gc, or as long as a fork shares them. A remote that has the thread brings it back at the
next fetch.
"""

from collections.abc import Iterable
from typing import NamedTuple

from uwf_git.agents.run_files import RunAlive
from uwf_git.commands.agent_run.runs import read_state
from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.branches import DAMAGED
from uwf_git.commands.worktree.record import forget_worktrees
from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote, list_remotes
from uwf_git.store.remotes.thread_sides import read_sides
from uwf_git.store.remotes.tracking import track
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, HeadMoved, get_head, resolve_thread
from uwf_git.store.threads.local_files import forget_log, forget_workdir
from uwf_git.store.threads.lock import forget_lock, lock_thread
from uwf_git.store.threads.preserved import list_preserved, release
from uwf_git.store.threads.run_dir import list_check_runs, list_run_dirs, remove_runs
from uwf_git.store.threads.snapshot import read_snapshot


class ThreadStillActive(Refused):
    """The thread has not ended."""

    code = "thread-still-active"

    def __init__(self, thread: ThreadId, *, is_damaged: bool) -> None:
        damaged = ", damaged" if is_damaged else ""
        ref = ACTIVE + thread
        super().__init__(
            f"thread {thread} is active{damaged}, and only archived threads can be removed",
            # A damaged thread cannot be killed.
            hint=f"`git update-ref -d {ref}` in the store gives it up as it is"
            if is_damaged
            else f"end it first: `uwf thread kill {thread} -m …`",
            thread=thread,
        )


class AgentStillRuns(Conflict):
    """The thread has ended, but one of its agents still runs."""

    code = "agent-still-runs"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"an agent of thread {thread} is still at work",
            hint="try again when it has ended",
            thread=thread,
        )


class Removal(NamedTuple):
    """An archived thread to remove."""

    thread: ThreadId
    commit: Oid
    """Its last commit."""

    status: str
    """Its status; `damaged` if that cannot be read."""

    workflow_name: str | None = None
    depth: int | None = None


class Removed(NamedTuple):
    """A thread that was removed."""

    removal: Removal
    remotes: list[str]
    """The remotes that had it at the last contact; the next fetch brings it back."""


def plan_removals(store: Store, texts: Iterable[str]) -> list[Removal]:
    """Return the threads that *texts* name, each once; nothing is removed yet.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: a text matches no thread, or several.
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
        # A damaged thread can be removed as well.
        return Removal(head.thread, head.commit, DAMAGED)
    return Removal(head.thread, head.commit, record.status, record.workflow_name, record.depth)


def remove_thread(store: Store, caller: Caller, removal: Removal) -> Removed:
    """Remove an archived thread: its refs, its tracking refs, its local files.

    Raises:
        NoSuchThread: another process removed it.
        ThreadBusy, AgentStillRuns: the thread or an agent of it is busy.
        HeadMoved: its head is no longer the one that was planned to be removed.
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
        for commit in list_preserved(store, thread):
            release(store, thread, commit)
        remotes = [each for each in list_remotes(store.config) if _forget(store, each, thread)]
        if not store.refs.delete(ARCHIVE + thread, seen=removal.commit):
            raise HeadMoved(thread)
        forget_lock(store, thread)
    return Removed(removal, [remote.name for remote in remotes])


def _check_no_agent_runs(store: Store, thread: ThreadId) -> None:
    runs = [*list_run_dirs(store, thread), *list_check_runs(store, thread)]
    if any(isinstance(read_state(run), RunAlive) for run in runs):
        raise AgentStillRuns(thread)


def _remove_files(store: Store, thread: ThreadId) -> None:
    remove_runs(store, thread)
    forget_log(store, thread)
    forget_workdir(store, thread)
    forget_worktrees(store, thread)


def _forget(store: Store, remote: Remote, thread: ThreadId) -> bool:
    """Remove the tracking refs of the thread at *remote*; return whether there were any."""
    sides = read_sides(store, remote, thread)
    track(store, remote, f"threads/{thread}", seen=sides.there_active, to=None)
    track(store, remote, f"archive/{thread}", seen=sides.there_archived, to=None)
    return sides.there_active is not None or sides.there_archived is not None
