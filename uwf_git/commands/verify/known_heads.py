"""The refs of threads in a store, whose histories were checked when they came.

A branch or a fork begins on a commit of another thread: what lies before it need not be read
again if that thread is here and has gone on from there.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType

from uwf_git.commands.verify.history import Either, thread_of, walk_back
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.ancestry import is_descendant
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head

_NOTHING: Mapping[ThreadId, Oid] = MappingProxyType({})


class KnownHeads:
    """The newest commits of threads, in this store or at a remote."""

    def __init__(self, objects: ObjectStore, find: Callable[[ThreadId], Oid | None]) -> None:
        self._objects, self.find = objects, find
        self._known: dict[Oid, bool] = {}
        self._trusted: set[Oid] = set()

    def trust(self, tip: Oid) -> None:
        """Count the history of *tip* as well: it was checked."""
        self._trusted.update(walk_back(self._objects, tip, self._trusted, self.has).commits)

    def has(self, oid: Oid) -> bool:
        """Check whether the commit *oid* is in the history of one of the threads."""
        if oid in self._trusted:
            return True
        if oid not in self._known:
            self._known[oid] = self._find(oid)
        return self._known[oid]

    def _find(self, oid: Oid) -> bool:
        try:
            thread = thread_of(read_commit(self._objects, oid))
        except StoreDamaged:
            return False
        tip = None if thread is None else self.find(thread)
        return tip is not None and is_descendant(self._objects, tip, oid)


def heads_of_store(store: Store, more: Mapping[ThreadId, Oid] = _NOTHING) -> KnownHeads:
    """Return the heads of the threads of *store*, and of those that *more* has when it is asked.

    One whose ref is damaged is none.
    """

    def find(thread: ThreadId) -> Oid | None:
        if thread in more:
            return more[thread]
        try:
            head = find_head(store, thread)
        except StoreDamaged:
            return None
        return None if head is None else head.commit

    return KnownHeads(store.objects, find)


def heads_of_refs(objects: ObjectStore, refs: Mapping[str, Oid]) -> KnownHeads:
    """Return the heads of the threads in *refs*, the refs of a remote by their names."""
    return KnownHeads(
        objects, lambda thread: refs.get(ARCHIVE + thread) or refs.get(ACTIVE + thread)
    )


def list_beginnings(
    objects: ObjectStore, tips: Iterable[Oid], had: Container[Oid], heads: KnownHeads
) -> set[Oid]:
    """List the commits on which the threads at *tips* began, of threads that are in *heads*."""
    found: set[Oid] = set()
    seen: set[Oid] = set()
    for tip in tips:
        history = walk_back(objects, tip, Either(had, seen), heads.has)
        seen.update(history.commits)
        if history.behind is not None and history.behind not in Either(had, seen):
            found.add(history.behind)
    return found
