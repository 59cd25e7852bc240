"""Object walks: which objects a commit needs that somebody does not have.

Owns: the walk from a commit back to commits that are had, through the trees that changed.
Knows nothing of: who asks: a push for what to send, a fetch for whether all of it came.
Always true: what stands behind a commit that is had is had as well; so of each commit only what
differs from its first parent's tree is looked at, and the cost is that of what is new.
"""

import stat
from collections.abc import Container, Iterator

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.commit import CommitView, read_commit
from uwf_git.store.node_tree import get_tree
from uwf_git.store.objects import DamagedObject, ObjectStore
from uwf_git.store.refs import Oid

Needed = ObjectID
"""The id of an object that somebody needs."""

_NO_OBJECTS: frozenset[ObjectID] = frozenset()


def list_needed(
    objects: ObjectStore,
    tip: Oid,
    had: Container[Oid],
    known: Container[ObjectID] = _NO_OBJECTS,
) -> list[ObjectID]:
    """List the objects that *tip* needs besides those behind the commits *had*, and *known* ones.

    Raises:
        DamagedCommit, DamagedObject: one is missing, or not of the kind that it must be.
    """
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
    """Give the commits, each after all of its parents.

    What of a tree is listed is what its commit's parent has not. Were the newest first, a tree
    that comes back (A, B, A again) would be listed without what A and B share, and the older A
    then be passed over as if that were all of it.
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
    """Give the tree of the first parent, which is had or needed, so that it counts as there."""
    if not commit.parents:
        return None
    try:
        return read_commit(objects, commit.parents[0]).tree
    except StoreDamaged:
        # It is told when the walk comes there, unless the other side has it.
        return None


def _walk_changes(
    objects: ObjectStore,
    pair: tuple[ObjectID, ObjectID | None],
    needed: Container[ObjectID],
    known: Container[ObjectID],
) -> Iterator[ObjectID]:
    """Give what a tree holds, itself included, but for what the tree before it holds there."""
    waiting = [pair]
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
                waiting.append((entry.sha, old.get(entry.path)))
            elif stat.S_IFMT(entry.mode) != _SUBMODULE:
                yield _there(objects, entry.sha)


_SUBMODULE = 0o160000


def _entries(objects: ObjectStore, tree: ObjectID | None) -> dict[bytes, ObjectID]:
    if tree is None:
        return {}
    try:
        return {entry.path: entry.sha for entry in get_tree(objects, tree).items()}
    except StoreDamaged:
        return {}


def _there(objects: ObjectStore, oid: ObjectID) -> ObjectID:
    if oid not in objects:
        raise DamagedObject(oid, "is missing")
    return oid
