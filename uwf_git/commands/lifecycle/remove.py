"""Remove an archived thread from this store; what is removed: removal_plan.py.

The archive ref goes last: a removal that was cut short leaves an archived thread. Commits stay
until git gc, or as long as a fork shares them. A remote that has the thread brings it back at the
next fetch.
"""

from typing import NamedTuple

from uwf_git.agents.run_files import RunAlive
from uwf_git.commands.agent_run.runs import read_state
from uwf_git.commands.caller import Caller
from uwf_git.commands.lifecycle.removal_plan import Removal, get_archived
from uwf_git.commands.worktree.forget import ForgottenWork, forget_work, remove_left_worktree
from uwf_git.commands.worktree.record import forget_worktrees
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import Remote, list_remotes
from uwf_git.store.remotes.tracking import read_sides, track
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, HeadMoved
from uwf_git.store.threads.history import list_preserved, release
from uwf_git.store.threads.local_files import forget_log, forget_settings, forget_workdir
from uwf_git.store.threads.lock import forget_lock, lock_thread
from uwf_git.store.threads.run_dir import list_check_runs, list_run_dirs, remove_runs


class AgentStillRuns(Conflict):
    """The thread has ended, but one of its agents still runs."""

    code = "agent-still-runs"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"an agent of thread {thread} is still at work",
            hint="try again when it has ended",
            thread=thread,
        )


class Removed(NamedTuple):
    """A thread that was removed."""

    removal: Removal
    remotes: list[str]
    """The remotes that had it at the last contact; the next fetch brings it back."""

    work: ForgottenWork | None = None
    """Of a branch that worked apart: the ref of its work, which was deleted."""


def remove_thread(store: Store, caller: Caller, removal: Removal) -> Removed:
    """Remove an archived thread: its refs, its tracking refs, its local files, its work.

    Raises:
        NoSuchThread: another process removed it.
        ThreadBusy, AgentStillRuns: the thread or an agent of it is busy.
        WorktreeStays: it is a branch that worked apart, and its worktree cannot be removed yet.
        ProgramFailed: git is missing, or failed.
        HeadMoved: its head is no longer the one that was planned to be removed.
        RefLocked: another git process holds one of its refs.
    """
    thread, parent = removal.thread, removal.parent
    if parent is not None:
        remove_left_worktree(store, caller.environ, thread=thread, parent=parent)
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        if get_archived(store, thread).commit != removal.commit:
            raise HeadMoved(thread)
        _check_no_agent_runs(store, thread)
        work = None
        if parent is not None:
            work = forget_work(store, caller.environ, thread=thread, parent=parent)
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
    return Removed(removal, [remote.name for remote in remotes], work)


def _check_no_agent_runs(store: Store, thread: ThreadId) -> None:
    runs = [*list_run_dirs(store, thread), *list_check_runs(store, thread)]
    if any(isinstance(read_state(run), RunAlive) for run in runs):
        raise AgentStillRuns(thread)


def _remove_files(store: Store, thread: ThreadId) -> None:
    remove_runs(store, thread)
    forget_log(store, thread)
    forget_workdir(store, thread)
    forget_settings(store, thread)
    forget_worktrees(store, thread)


def _forget(store: Store, remote: Remote, thread: ThreadId) -> bool:
    """Remove the tracking refs of the thread at *remote*; return whether there were any."""
    sides = read_sides(store, remote, thread)
    tracked = {"threads": sides.there_active, "archive": sides.there_archived}
    track(store, remote, {f"{kind}/{thread}": (oid, None) for kind, oid in tracked.items()})
    return sides.there_active is not None or sides.there_archived is not None
