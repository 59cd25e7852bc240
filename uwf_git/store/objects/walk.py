"""Walk commits: ancestry along first parents, and the objects that a commit needs."""

import stat
from collections.abc import Container, Iterator

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.commit import CommitView, read_commit
from uwf_git.store.objects.objects import ObjectStore, damaged_object, get_tree
from uwf_git.store.oid import Oid

# Ancestry along first parents, the only way in which a ref of a thread or workflow moves.

MOST_COMMITS = 200_000
"""How far back an ancestor is searched; no thread is as long, but a forged chain may be."""


def descends(objects: ObjectStore, tip: Oid, ancestor: Oid, *, since_s: int = 0) -> bool:
    """Check whether *tip* is *ancestor*, or has it among its first parents.

    The walk stops at the first commit that is older than *since_s*, in seconds since 1970.
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
    return ObjectID(oid.encode()) in objects


# Object walks: which objects a commit needs beyond those behind commits that are already there.
#
# A push asks what to send, a fetch whether everything came. Of each commit only the difference to
# its first parent's tree is read, so the cost depends on what is new.

Needed = ObjectID
"""The id of an object that a commit needs, for callers that do not import dulwich."""

_NO_OBJECTS: frozenset[ObjectID] = frozenset()


def list_new_objects(
    objects: ObjectStore,
    tip: Oid,
    had: Container[Oid],
    known: Container[ObjectID] = _NO_OBJECTS,
) -> list[ObjectID]:
    """List the objects that *tip* needs, without those behind the commits *had* and the *known*."""
    needed: dict[ObjectID, None] = {}
    for commit in _walk_commits(objects, tip, had, known):
        needed[ObjectID(commit.oid.encode())] = None
        before = _tree_before(objects, commit)
        for oid in _walk_changes(objects, (commit.tree, before), needed, known):
            needed[oid] = None
    return list(needed)


def _walk_commits(
    objects: ObjectStore, tip: Oid, had: Container[Oid], known: Container[ObjectID]
) -> Iterator[CommitView]:
    """Yield the commits, each after all of its parents.

    Only the difference of a tree to the parent's tree is listed. In the order newest first, a tree
    that comes back (A, B, A again) would be listed without what A and B share, and the older A
    would then be skipped as already listed.
    """
    waiting: list[tuple[Oid, CommitView | None]] = [(tip, None)]
    seen: set[Oid] = set()
    while waiting:
        oid, commit = waiting.pop()
        if commit is not None:
            yield commit
        elif oid not in seen and oid not in had and ObjectID(oid.encode()) not in known:
            seen.add(oid)
            commit = read_commit(objects, oid)
            waiting.append((oid, commit))
            waiting += [(parent, None) for parent in commit.parents]


def _tree_before(objects: ObjectStore, commit: CommitView) -> ObjectID | None:
    """Return the tree of the first parent, whose objects were had already or listed before."""
    if not commit.parents:
        return None
    try:
        return read_commit(objects, commit.parents[0]).tree
    except StoreDamaged:
        # The walk raises when it comes there, unless the commit is had.
        return None


def _walk_changes(
    objects: ObjectStore,
    pair: tuple[ObjectID, ObjectID | None],
    needed: Container[ObjectID],
    known: Container[ObjectID],
) -> Iterator[ObjectID]:
    """Yield a tree and its entries, except entries that the tree before has at the same path."""
    waiting = [pair]
    queued = {pair[0]}
    while waiting:
        oid, before = waiting.pop()
        if oid == before or oid in needed or oid in known:
            continue
        tree = get_tree(objects, oid)
        yield oid
        old = _entries(objects, before)
        for entry in tree.items():
            if entry.sha == old.get(entry.path) or entry.sha in needed or entry.sha in known:
                continue
            if stat.S_ISDIR(entry.mode):
                # Once, and only what is here: a tree can name a hundred thousand.
                if entry.sha not in queued:
                    queued.add(_check_is_here(objects, entry.sha))
                    waiting.append((entry.sha, old.get(entry.path)))
            elif stat.S_IFMT(entry.mode) != _SUBMODULE:
                yield _check_is_here(objects, entry.sha)


_SUBMODULE = 0o160000


def _entries(objects: ObjectStore, tree: ObjectID | None) -> dict[bytes, ObjectID]:
    if tree is None:
        return {}
    try:
        return {entry.path: entry.sha for entry in get_tree(objects, tree).items()}
    except StoreDamaged:
        return {}


def _check_is_here(objects: ObjectStore, oid: ObjectID) -> ObjectID:
    if oid not in objects:
        raise damaged_object(oid, "is missing")
    return oid
