"""Adopt a remote's history for a diverged thread, once a fork keeps the local one.

The one move of a thread's ref that is not to a descendant: from a commit that another thread of
this store has in its history, to a commit that was checked.
"""

from collections.abc import Iterator
from functools import partial

from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.push_plan import list_joined
from uwf_git.commands.remote.reconcile import check_no_work_waits, first_finding
from uwf_git.commands.verify.thread import check_thread
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote, Sides, list_sides
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, advance_head, archive_head, replace_archive
from uwf_git.store.threads.local_files import forget_workdir
from uwf_git.store.threads.lock import forget_lock, lock_thread
from uwf_git.store.threads.snapshot import read_snapshot


def adopt_remote_history(
    store: Store, caller: Caller, thread: ThreadId, *, kept: Oid
) -> str | None:
    """Move *thread* from *kept*, which another thread has in its history, to a remote's head.

    Branches that *kept* has joined go on as at the remote too. Return the remote, or None if the
    thread has diverged from no remote, or is busy.
    """
    follows = _adopt(store, caller, thread, kept)
    for end in list_joined(store, kept) if follows else ():
        _adopt(store, caller, read_snapshot(store, end).record.thread, end)
    return follows


def _adopt(store: Store, caller: Caller, thread: ThreadId, kept: Oid) -> str | None:
    for remote, sides in _diverged(store, thread, kept):
        there = sides.there_archived or sides.there_active
        if there is None:
            continue
        is_archived = sides.there_archived is not None
        try:
            with lock_thread(store, thread, since_ms=caller.now_ms()):
                head = Head(thread, kept, archived=sides.archived is not None)
                if not head.archived:
                    check_no_work_waits(store, head)
                check = partial(check_thread, store, thread, there, archived=is_archived)
                if first_finding(store, check) is not None:
                    continue
                if head.archived:
                    replace_archive(store, head, there)
                    forget_lock(store, thread)
                    return remote.name
                moved = advance_head(store, head, there)
                if is_archived:
                    # Archive after the move: a kill in between must not leave an active ref that
                    # diverges from the archive.
                    archive_head(store, moved, there)
                    forget_workdir(store, thread)
        except Conflict:
            continue
        return remote.name
    return None


def _diverged(store: Store, thread: ThreadId, kept: Oid) -> Iterator[tuple[Remote, Sides]]:
    """List the remotes from which the thread, here at *kept*, has diverged."""
    for remote, sides in list_sides(store, thread):
        there = sides.there_archived or sides.there_active
        if kept not in {sides.active, sides.archived} or there is None:
            continue
        if sides.archived is not None and (sides.active or not sides.there_archived):
            # A fetch settles what is active on one side.
            continue
        is_ahead = is_descendant(store.objects, there, kept)
        is_behind = sides.there_archived is None and is_descendant(store.objects, kept, there)
        if not is_ahead and not is_behind:
            yield remote, sides
