"""Descent: whether one commit goes on from another.

Owns: the walk along first parents from commit to commit.
Knows nothing of: what the commits mean. Always true: refs of ours move along first parents only.
"""

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.commit import read_commit
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid

MOST_COMMITS = 200_000
"""How far back an ancestor is looked for; no thread is that long, and a forged chain may be."""


def descends(objects: ObjectStore, tip: Oid, ancestor: Oid, *, since_s: int = 0) -> bool:
    """Tell whether *tip* is *ancestor*, or has it among its first parents.

    The walk stops at the first commit that is older than *since_s*, in seconds since 1970.

    Raises:
        DamagedCommit: a commit on the way is missing, or none.
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


def goes_on_from(objects: ObjectStore, tip: Oid, ancestor: Oid) -> bool:
    """Tell whether *ancestor* is *tip* or stands behind it, when either may be unknown here.

    No for commits that are not here, or that cannot be read on the way. Dates never run backwards
    along a history of ours: to tell that two sides went apart costs no more than how far.
    """
    if tip == ancestor:
        return True
    try:
        since_s = read_commit(objects, ancestor).time_s
        return descends(objects, tip, ancestor, since_s=since_s)
    except StoreDamaged:
        return False


def has_object(objects: ObjectStore, oid: Oid) -> bool:
    """Tell whether the object is here, whatever it is."""
    return ObjectID(oid.encode()) in objects
