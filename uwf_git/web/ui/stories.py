"""The events of the threads that were looked at last, kept while their tips stay."""

import threading
from typing import Any, NamedTuple

from uwf_git.commands.inspect.excerpt import Mask
from uwf_git.commands.inspect.story import StoryReader, Telling, walk_entries
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, find_head

_MOST_KEPT = 6

Entries = list[dict[str, Any]]


class _Kept(NamedTuple):
    entries: Entries
    tips: dict[ThreadId, Oid | None]


class Stories:
    """The entries of some threads; several Python threads may ask."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kept: dict[ThreadId, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, store: Store, head: Head) -> Entries:
        """Return the entries of the thread of *head*, oldest first."""
        with self._lock:
            # Tabs that ask at once wait for the first, and share what it has read.
            kept = self._kept.pop(head.thread, None)
            if kept is None or any(
                _find_tip(store, each) != tip for each, tip in kept.tips.items()
            ):
                kept = self._read_kept(store, head)
            self._kept[head.thread] = kept
            for oldest in list(self._kept)[:-_MOST_KEPT]:
                del self._kept[oldest]
        return kept.entries

    def find(self, store: Store, head: Head, commit: str) -> dict[str, Any]:
        for entry in walk_entries(self.read(store, head)):
            if entry.get("commit") == commit:
                return entry
        raise Refused(
            f"thread {head.thread} has no event {commit[:40]!r}",
            code="no-such-entry",
            hint=f"`uwf thread read {head.thread}` shows its events",
            thread=head.thread,
        )

    def _read_kept(self, store: Store, head: Head) -> _Kept:
        reader = StoryReader(store, Telling(self._mask))
        entries = reader.read(head.thread, head.commit, through_forks=True)
        branches = {
            ThreadId(branch["thread"])
            for entry in walk_entries(entries)
            for branch in entry.get("branches", ())
        }
        tips = {each: _find_tip(store, each) for each in branches}
        return _Kept(entries, {**tips, head.thread: head.commit})


def _find_tip(store: Store, thread: ThreadId) -> Oid | None:
    head = find_head(store, thread)
    return None if head is None else head.commit
