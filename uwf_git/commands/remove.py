"""`uwf thread rm`: which threads are removed, and their removal from this store."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from uwf_git.commands.agent_run.runs import read_state
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import list_joined
from uwf_git.commands.inspect.list import DAMAGED
from uwf_git.commands.remote.push_plan import (
    find_false_join,
    list_new_joins,
    with_branches,
)
from uwf_git.commands.remote.reconcile import check_no_work_waits, first_finding
from uwf_git.commands.verify.thread import check_thread
from uwf_git.commands.worktree.record import find_worktree, forget_worktrees
from uwf_git.commands.worktree.worktrees import (
    ForgottenWork,
    forget_chain,
    forget_work,
    remove_fork_worktree,
    remove_left_worktree,
)
from uwf_git.errors import Conflict, Refused, StoreDamaged, name_some
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.remotes.remotes import Sides, find_peer, forget_tracked, list_sides, read_shared
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    ACTIVE,
    ARCHIVE,
    Head,
    HeadMoved,
    advance_head,
    archive_head,
    find_head,
    get_head,
    replace_archive,
)
from uwf_git.store.threads.history import list_preserved, read_snapshot, release
from uwf_git.store.threads.local_files import (
    forget_files,
    forget_lock,
    forget_log,
    forget_settings,
    forget_workdir,
    list_check_runs,
    list_run_dirs,
    lock_thread,
    remove_runs,
)
from uwf_git.store.threads.naming import resolve_thread

# Which threads `uwf thread rm` removes: the named ones and their branches, all of them archived.
#
# A thread that names another thread as its parent is its branch; a list in a parent alone proves
# nothing. Branches come before their parents, so a removal that was cut short can be repeated.

_SHOWN = 3


class Removal(NamedTuple):
    thread: ThreadId
    commit: Oid

    status: str
    """Its status; `damaged` if that cannot be read, though it is of this format."""

    workflow_name: str | None = None
    depth: int | None = None
    parent: ThreadId | None = None
    """Of a branch: the thread that it belongs to."""

    works_apart: bool = False
    """It is a branch that had a worktree of its own here."""


def plan_removals(store: Store, texts: Iterable[str]) -> list[Removal]:
    """Return the threads that *texts* name and their branches, each once; remove nothing."""
    named = dict.fromkeys(resolve_thread(store, text) for text in texts)
    planned: dict[ThreadId, Removal] = {}
    for thread in named:
        root = _plan(store, get_archived(store, thread))
        _check_not_needed(store, root)
        # Branches first.
        for removal in [*reversed(list(_plan_branches(store, root))), root]:
            planned.setdefault(removal.thread, removal)
    return list(planned.values())


def get_archived(store: Store, thread: ThreadId) -> Head:
    head = get_head(store, thread)
    if not head.archived:
        is_damaged = _plan(store, head).status == DAMAGED
        damaged = ", damaged" if is_damaged else ""
        ref = ACTIVE + thread
        raise Refused(
            f"thread {thread} is active{damaged}, and only archived threads can be removed",
            # A damaged thread cannot be killed.
            hint=f"`git update-ref -d {ref}` in the store gives it up as it is"
            if is_damaged
            else f"end it first: `uwf thread kill {thread} -m …`",
            thread=thread,
            code="thread-still-active",
        )
    return head


def _plan(store: Store, head: Head) -> Removal:
    try:
        snapshot = read_snapshot(store, head.commit)
        record, parent = snapshot.record, snapshot.get_trunk()
    except StoreDamaged as error:
        _check_format(head.thread, error)
        # A damaged thread can be removed as well.
        return Removal(head.thread, head.commit, DAMAGED)
    apart = parent is not None and find_worktree(store, parent, head.thread) is not None
    told = (record.status, record.workflow_name, record.depth, parent, apart)
    return Removal(head.thread, head.commit, *told)


def _check_format(thread: ThreadId, error: StoreDamaged) -> None:
    """Leave a thread of another format, whose branches nobody knows here, as it is."""
    if "format" in error.facts:
        told = f"thread {thread}: {error.message}"
        raise StoreDamaged(told, code=error.code, hint=error.hint, **error.facts) from error


def _plan_branches(store: Store, root: Removal) -> Iterator[Removal]:
    """Yield the branches below *root* that are here, parents first."""
    family, active = {root.thread}, []
    for thread in with_branches(store, [root.thread])[1:]:
        head = find_head(store, thread)
        if head is None:
            continue
        removal = _plan(store, head)
        if removal.parent not in family:
            continue
        family.add(thread)
        if head.archived:
            yield removal
        else:
            active.append(thread)
    if active:
        count = "1 branch" if len(active) == 1 else f"{len(active)} branches"
        raise Refused(
            f"{count} of thread {root.thread} must end first: {name_some(active, most=_SHOWN)}",
            code="branches-still-active",
            hint=f"`uwf thread kill {active[0]} -m …` ends one; a step of it ends all that a "
            "kill of the thread left",
            thread=root.thread,
            branches=list(active),
        )


def _check_not_needed(store: Store, removal: Removal) -> None:
    parent = None if removal.parent is None else find_head(store, removal.parent)
    if parent is None or parent.archived:
        return
    try:
        split = read_snapshot(store, parent.commit).get_present().split
    except StoreDamaged as error:
        _check_format(parent.thread, error)
        # It can join nothing.
        return
    if split is not None and removal.thread in {child.thread for child in split.children}:
        raise Refused(
            f"thread {removal.thread} is a branch that thread {parent.thread} has not joined yet",
            code="branch-not-joined",
            hint=f"`uwf thread run {parent.thread}` goes on and joins it; `uwf thread kill "
            f"{parent.thread} -m …` "
            "ends that thread, and `uwf thread rm` of it takes its branches along",
            thread=removal.thread,
            parent=parent.thread,
        )


# Remove an archived thread from this store; what is removed: above.
#
# The archive ref goes last: a removal that was cut short leaves an archived thread. Commits stay
# until git gc, or as long as a fork shares them. A remote that has the thread brings it back at
# the next fetch.


class Removed(NamedTuple):
    removal: Removal
    remotes: list[str]
    """The remotes that had it at the last contact; the next fetch brings it back."""

    work: ForgottenWork | None = None
    """Of a branch that worked apart: the ref of its work, which was deleted."""

    place: str | None = None
    """Of a fork: the work tree that uwf made for it, if that stays."""


def remove_thread(store: Store, caller: Caller, removal: Removal) -> Removed:
    """Remove an archived thread: its refs, its tracking refs, its local files, its work."""
    thread, parent = removal.thread, removal.parent
    if parent is not None:
        remove_left_worktree(store, caller.environ, thread=thread, parent=parent)
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        if get_archived(store, thread).commit != removal.commit:
            raise HeadMoved(thread)
        runs = [*list_run_dirs(store, thread), *list_check_runs(store, thread)]
        if any(read_state(run) == "alive" for run in runs):
            raise Conflict(
                f"an agent of thread {thread} is still at work",
                code="agent-still-runs",
                hint="try again when it has ended",
                thread=thread,
            )
        work = place = None
        if parent is None:
            place = remove_fork_worktree(store, caller.environ, thread, cwd=caller.cwd)
        else:
            work = forget_work(store, caller.environ, thread=thread, parent=parent, cwd=caller.cwd)
        work = work or forget_chain(store, caller.environ, thread, cwd=caller.cwd)
        remove_runs(store, thread)
        forget_log(store, thread)
        forget_files(store, thread)
        forget_settings(store, thread)
        forget_worktrees(store, thread)
        forget_workdir(store, thread)
        # Without its archive ref it would be an active thread again.
        active = store.refs.find(ACTIVE + thread)
        if active is not None:
            store.refs.delete(ACTIVE + thread, seen=active)
        for commit in list_preserved(store, thread):
            release(store, thread, commit)
        remotes = forget_tracked(store, thread)
        if not store.refs.delete(ARCHIVE + thread, seen=removal.commit):
            raise HeadMoved(thread)
        forget_lock(store, thread)
    return Removed(removal, remotes, work, place)


# Adopt a remote's history for a diverged thread, once a fork keeps the local one.
#
# The one move of a thread's ref that is not to a descendant: from a commit that another thread of
# this store has in its history, to a commit that was checked.


def adopt_remote_history(
    store: Store, caller: Caller, thread: ThreadId, *, kept: Oid
) -> str | None:
    """Move *thread* from *kept*, which another thread has in its history, to a remote's head.

    Branches that *kept* has joined go on as at the remote too. Return the remote, or None if the
    thread has diverged from no remote, agrees with another one, or is busy.
    """
    follows = _adopt(store, caller, thread, kept)
    for end in list_joined(store, kept) if follows else ():
        _adopt(store, caller, read_snapshot(store, end).record.thread, end)
    return follows


def _adopt(store: Store, caller: Caller, thread: ThreadId, kept: Oid) -> str | None:
    for name, sides, there in _diverged(store, thread, kept):
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
                    replace_archive(store, head, there, archived=is_archived)
                    forget_lock(store, thread)
                    return name
                moved = advance_head(store, head, there)
                if is_archived:
                    # Archive after the move: a kill in between must not leave an active ref that
                    # diverges from the archive.
                    archive_head(store, moved, there)
                    forget_workdir(store, thread)
        except Conflict:
            continue
        return name
    return None


def _diverged(store: Store, thread: ThreadId, kept: Oid) -> Iterator[tuple[str, Sides, Oid]]:
    """List the remotes from which the thread, here at *kept*, has diverged, and where it is."""
    for remote, sides in list_sides(store, thread):
        there = sides.there
        if kept not in {sides.active, sides.archived} or there is None:
            continue
        if sides.archived is not None and sides.active is not None:
            continue  # a fetch settles what an interrupted archiving has left
        is_ahead = is_descendant(store.objects, there, kept)
        is_behind = sides.there_archived is None and is_descendant(store.objects, kept, there)
        if is_behind:
            # What has joined another end than the remote has cannot be pushed either.
            ends = list_new_joins(store, kept, there)
            is_behind = find_false_join(store, ends, read_shared(store, remote)) is None
        # No other remote is left for this one: both would lead the thread in a circle.
        if not is_ahead and not is_behind and find_peer(store, thread, kept, there) is None:
            yield remote.name, sides, there
