"""The way of a history: which commits it has, from the newest back.

Owns: the walk along first parents, through forks, and where it may stop.
Knows nothing of: what a commit must be.
Always true: of each commit only its id is remembered, so that any history fits.
"""

from collections.abc import Container
from typing import NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.commit import CommitView, read_commit
from uwf_git.store.message import BadMessage
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.thread_message import parse_thread_message

_FORK = b"\nUwf-Event: fork\n"


class History(NamedTuple):
    """The commits of a ref that are to be looked at."""

    commits: list[Oid]
    """The newest first."""

    behind: Oid | None
    """The commit behind the last of them, which is believed; None if there is none."""

    damage: StoreDamaged | None
    """Why the walk could not go on behind the last of them; None if it came to an end."""

    forks: dict[Oid, ThreadId | None]
    """The thread that each fork on the way says that it begins."""

    beginnings: list[ThreadId | None]
    """What the oldest commit of each thread on the way says that it is of, newest thread first."""

    tip: ThreadId | None
    """What the newest commit says that it is of; None if it says nothing that can be read."""


def walk_back(objects: ObjectStore, tip: Oid, believed: Container[Oid]) -> History:
    """Walk from *tip* back to a commit that is *believed*, or to the beginning."""
    commits: list[Oid] = []
    forks: dict[Oid, ThreadId | None] = {}
    beginnings: list[ThreadId | None] = []
    damage: StoreDamaged | None = None
    first: CommitView | None = None
    view: CommitView | None = None
    oid: Oid | None = tip
    while oid is not None and oid not in believed:
        try:
            view = read_commit(objects, oid)
        except StoreDamaged as error:
            damage, oid = error, None
            break
        commits.append(oid)
        first = first or view
        if _FORK in view.message:
            forks[oid] = thread_of(view)
            beginnings.append(thread_of(view))
        oid = view.parents[0] if view.parents else None
    if view is not None and (not commits or commits[-1] not in forks):
        beginnings.append(thread_of(view))
    tip_thread = None if first is None else thread_of(first)
    return History(commits, oid, damage, forks, beginnings, tip_thread)


def thread_of(view: CommitView) -> ThreadId | None:
    """Give the thread that a commit says it is of; None if it says nothing that can be read."""
    try:
        return parse_thread_message(view.message).thread
    except BadMessage:
        return None


def descends(objects: ObjectStore, tip: Oid, ancestor: Oid) -> bool:
    """Tell whether *ancestor* is *tip* or behind it, along first parents."""
    history = walk_back(objects, tip, {ancestor})
    return history.behind == ancestor
