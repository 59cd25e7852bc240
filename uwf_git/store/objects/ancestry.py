"""Ancestry along first parents, the only way in which a ref of a thread or workflow moves."""

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid

MOST_COMMITS = 200_000
"""How far back an ancestor is searched; no thread is as long, but a forged chain may be."""


def descends(objects: ObjectStore, tip: Oid, ancestor: Oid, *, since_s: int = 0) -> bool:
    """Check whether *tip* is *ancestor*, or has it among its first parents.

    The walk stops at the first commit that is older than *since_s*, in seconds since 1970.

    Raises:
        StoreDamaged: a commit on the way is missing or malformed.
    """
    oid: Oid | None = tip
    for _commit in range(MOST_COMMITS):
        if oid is None or oid == ancestor:
            return oid is not None
        commit = read_commit(objects, oid)
        if commit.time_s < since_s:
            return False
        oid = next(iter(commit.parents), None)
    return False


def is_descendant(objects: ObjectStore, tip: Oid, ancestor: Oid) -> bool:
    """Check the same for commits that may be missing here; missing or unreadable means False.

    A commit is never dated before its parents, so the walk ends at the date of *ancestor*: the
    cost depends on how far two sides have diverged, not on the length of the thread.
    """
    if tip == ancestor:
        return True
    try:
        since_s = read_commit(objects, ancestor).time_s
        return descends(objects, tip, ancestor, since_s=since_s)
    except StoreDamaged:
        return False


def has_object(objects: ObjectStore, oid: Oid) -> bool:
    """Check whether the object *oid*, of any kind, is here."""
    return ObjectID(oid.encode()) in objects
