"""The refs of threads in a store, whose histories were checked when they came.

A branch or a fork begins on a commit of another thread: what lies before it need not be read
again if that thread is here and has gone on from there.
"""

from uwf_git.commands.verify.history import thread_of
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.ancestry import is_descendant
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head


class KnownHeads:
    """The threads of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[Oid, bool] = {}

    def find(self, thread: ThreadId) -> Oid | None:
        """Return the newest commit of *thread*; None if it is not here, or its ref is damaged."""
        try:
            head = find_head(self._store, thread)
        except StoreDamaged:
            return None
        return None if head is None else head.commit

    def has(self, oid: Oid) -> bool:
        """Check whether the commit *oid* is in the history of a thread that is here."""
        if oid not in self._known:
            self._known[oid] = self._find(oid)
        return self._known[oid]

    def _find(self, oid: Oid) -> bool:
        try:
            thread = thread_of(read_commit(self._store.objects, oid))
        except StoreDamaged:
            return False
        tip = None if thread is None else self.find(thread)
        return tip is not None and is_descendant(self._store.objects, tip, oid)
