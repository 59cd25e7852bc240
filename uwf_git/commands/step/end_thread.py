"""End a thread: its last commit, then its move to the archive, then its local files.

The last commit adds no node; the head of the chain stays.
"""

from contextlib import suppress
from typing import Literal

from uwf_git.commands.agent_run.runs import forget_recorded_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.split.trunk import find_isolation, find_owner
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.commands.worktree.record import list_worktrees
from uwf_git.errors import UwfError
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, archive_head
from uwf_git.store.threads.local_files import forget_workdir
from uwf_git.store.threads.lock import forget_lock
from uwf_git.store.threads.record import build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot


def end_thread(
    store: Store,
    caller: Caller,
    seen: tuple[Head, Snapshot],
    *,
    event: Literal["end", "kill"],
    body: str = "",
) -> ThreadResult:
    """End a thread whose lock the caller holds; *body* is the reason, if there is one.

    Raises:
        HeadMoved: another process moved the head.
        ProgramFailed: what a branch left in its worktree cannot be committed; a kill ends it so.
    """
    head, snapshot = seen
    work = _keep_work(store, caller, snapshot, is_killed=event == "kill")
    new = build_next(read_standing(snapshot), event, Cause(note=body))
    commit = record_next(store, snapshot, new, caller.signing(store))
    archive_head(store, head, commit)
    # A run that could not be recorded stays readable until gc finds it old.
    forget_recorded_runs(store, head.thread)
    forget_workdir(store, head.thread)
    _remove_worktrees(store, caller, snapshot, is_kept=work is not None)
    sweep_worktrees_of(store, caller, head.thread)
    forget_lock(store, head.thread)
    return build_thread_result(new.record, said=new.said, commit=commit)._replace(work=work)


def sweep_worktrees_of(store: Store, caller: Caller, *threads: ThreadId) -> None:
    """Remove what is left of branches of *threads* that have ended: their worktrees.

    Of a process that was killed between the two, or that another one kept from it.
    """
    if any(list_worktrees(store, thread) for thread in threads):
        from uwf_git.commands.worktree.retire import sweep_worktrees  # noqa: PLC0415 (few branches work apart)

        # The next sweep removes what cannot be removed now.
        with suppress(UwfError, OSError):
            sweep_worktrees(store, caller.environ, threads)


def _keep_work(store: Store, caller: Caller, snapshot: Snapshot, *, is_killed: bool) -> str | None:
    """Commit what a branch left in its worktree; return the ref of the commit."""
    if find_isolation(snapshot) is None:
        return None
    from uwf_git.commands.worktree.retire import keep_work  # noqa: PLC0415 (few branches work apart)

    try:
        return keep_work(store, caller.environ, snapshot)
    except UwfError:
        # A kill ends the thread all the same; its worktree stays until it can be committed.
        if not is_killed:
            raise
        return None


def _remove_worktrees(store: Store, caller: Caller, snapshot: Snapshot, *, is_kept: bool) -> None:
    """Remove the worktree of a branch that has ended, and those that waited for it to end."""
    if find_owner(store, snapshot) is None:
        return
    from uwf_git.commands.worktree.retire import remove_ended  # noqa: PLC0415 (few branches work apart)

    # The next sweep removes what cannot be removed now.
    with suppress(UwfError, OSError):
        remove_ended(store, caller.environ, snapshot, is_kept=is_kept)
