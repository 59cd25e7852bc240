"""Walk a history along first parents, through forks, and collect its commit ids.

Only ids are kept, so that a history of any length fits in memory.
"""

from collections.abc import Callable, Container
from typing import NamedTuple

from uwf_git.commands.verify.finding import Finding
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.commit import CommitView, read_commit
from uwf_git.store.objects.message import BadMessage, OldFormat, parse_trailers
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_thread_message

_FORK = b"\nUwf-Event: fork\n"
# Of a branch, whose thread begins at a commit of another one.
_START = b"\nUwf-Event: start\n"


class History(NamedTuple):
    """The commits of a ref that are to be checked."""

    commits: list[Oid]
    """The newest first."""

    behind: Oid | None
    """The trusted commit before the oldest of them; None if there is none."""

    damage: StoreDamaged | None
    """Why the walk stopped before the beginning; None if it did not."""

    forks: dict[Oid, ThreadId | None]
    """The thread that each fork commit names."""

    beginnings: list[ThreadId | None]
    """The thread that the oldest commit of each thread on the way names, newest first."""

    tip: ThreadId | None
    """The thread that the newest commit names; None if its message cannot be read."""


class Either:
    """The ids in one of two sets."""

    def __init__(self, *sets: Container[Oid | None] | Container[Oid]) -> None:
        self._sets = sets

    def __contains__(self, oid: object) -> bool:
        return any(oid in each for each in self._sets)


def walk_back(
    objects: ObjectStore,
    tip: Oid,
    trusted: Container[Oid],
    is_shared: Callable[[Oid], bool] = lambda _oid: False,
) -> History:
    """Walk from *tip* back to one of the *trusted* commits, or to the beginning.

    Where a thread began at a commit of another one, *is_shared* says if that one is trusted too.
    """
    commits: list[Oid] = []
    forks: dict[Oid, ThreadId | None] = {}
    beginnings: list[ThreadId | None] = []
    damage: StoreDamaged | None = None
    first: CommitView | None = None
    view: CommitView | None = None
    oid: Oid | None = tip
    while oid is not None and oid not in trusted:
        try:
            view = read_commit(objects, oid)
        except StoreDamaged as error:
            damage, oid = error, None
            break
        commits.append(oid)
        first = first or view
        if _FORK in view.message or (_START in view.message and view.parents):
            forks[oid] = thread_of(view)
            beginnings.append(thread_of(view))
        oid = view.parents[0] if view.parents else None
        if oid is not None and commits[-1] in forks and oid not in trusted and is_shared(oid):
            break
    if view is not None and (not commits or commits[-1] not in forks):
        beginnings.append(thread_of(view))
    tip_thread = None if first is None else thread_of(first)
    return History(commits, oid, damage, forks, beginnings, tip_thread)


def find_old_format(objects: ObjectStore, ref: str, tip: Oid) -> Finding | None:
    """Return that *ref* has a format that is not read any more; None if it has not."""
    try:
        parse_trailers(read_commit(objects, tip).message)
    except OldFormat as error:
        told = error.of_commit(tip)
        return Finding(f"the history cannot be checked: {told.message}", error.hint or "", ref, tip)
    except StoreDamaged:
        return None
    return None


def thread_of(view: CommitView) -> ThreadId | None:
    """Return the thread that a commit names; None if its message cannot be read."""
    try:
        return parse_thread_message(view.message).thread
    except BadMessage:
        return None
