"""Giving way: a thread that went two ways follows the remote's, once its own is kept elsewhere.

Owns: the one move of a thread's ref that is not to a descendant.
Knows nothing of: how its own side is kept. Always true: the ref moves only from a commit that
another thread of this store has in its history, to one that was checked; so nothing is lost.
"""

from collections.abc import Iterator

from uwf_git.commands.caller import Caller
from uwf_git.commands.check_thread import check_thread
from uwf_git.commands.reconcile import check_no_work_waits
from uwf_git.errors import Conflict, StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.descent import goes_on_from
from uwf_git.store.heads import Head, advance_head, archive_head
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import Remote, list_remotes
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_thread
from uwf_git.store.thread_sides import Sides, read_sides
from uwf_git.store.workdirs import forget_workdir


def give_way(store: Store, caller: Caller, thread: ThreadId, *, kept: Oid) -> str | None:
    """Let *thread*, which another thread keeps as it is at *kept*, go on as it is at a remote.

    Returns:
        The remote that it follows now; None if it went two ways with none, or if somebody works
        on it, so that it stays as it is.
    """
    for remote, sides in _diverged(store, thread, kept):
        there = sides.there_archived or sides.there_active
        if there is None:
            continue
        is_archived = sides.there_archived is not None
        try:
            with lock_thread(store, thread, since_ms=caller.now_ms()):
                head = Head(thread, kept, archived=False)
                check_no_work_waits(store, head)
                if any(check_thread(store, thread, there, archived=is_archived)):
                    continue
                moved = advance_head(store, head, there)
                if is_archived:
                    # Only now: of a kill half-way, an active ref that went another way would stay
                    # beside the archive, and nobody could tell it from work.
                    archive_head(store, moved, there)
                    forget_workdir(store, thread)
        except Conflict:
            continue
        return remote.name
    return None


def _diverged(store: Store, thread: ThreadId, kept: Oid) -> Iterator[tuple[Remote, Sides]]:
    """Give the remotes at which the thread went another way than to *kept*, where it is here."""
    for remote in list_remotes(store.config):
        try:
            sides = read_sides(store, remote, thread)
        except StoreDamaged:
            continue
        there = sides.there_archived or sides.there_active
        if sides.active != kept or sides.archived is not None or there is None:
            continue
        is_ahead = goes_on_from(store.objects, there, kept)
        is_behind = sides.there_archived is None and goes_on_from(store.objects, kept, there)
        if not is_ahead and not is_behind:
            yield remote, sides
