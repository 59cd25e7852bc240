"""Poll the heads of all threads; read them only when the times of folders or packed-refs changed.

Times count as unchanged only after they stood still longer than the coarsest file system clock
ticks: a write in the tick of the last look leaves the same time (git's "racy" index entries).
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.oid import Oid
from uwf_git.store.refs.packed_refs import list_packed_refs, stamp_packed
from uwf_git.store.refs.refs import read_loose_refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

# FAT has a resolution of two seconds; no file system that git runs on is coarser.
_TICK_S = 2.0


class Tips(NamedTuple):
    heads: dict[ThreadId, Oid]
    bad: tuple[str, ...] = ()
    """The thread refs that hold no object id."""

    ended: frozenset[ThreadId] = frozenset()


class RefWatch:
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._stamp: tuple[str, ...] = ()
        self._since = self._looked = float("-inf")
        self._packed_stamp: str | None = None
        self._packed: dict[str, dict[ThreadId, Oid]] = {}

    def look(self) -> Tips | None:
        """Return the heads; None if nothing can have changed since the last look."""
        now, stamp = self._clock(), self._read_stamp()
        if stamp != self._stamp:
            self._stamp, self._since = stamp, now
        elif self._looked > self._since + _TICK_S:
            return None
        self._looked = now
        return self._read()

    def _read_stamp(self) -> tuple[str, ...]:
        folders = (_stamp(os.path.join(self._store.path, each)) for each in (ACTIVE, ARCHIVE))
        return (*folders, stamp_packed(self._store.path))

    def _read(self) -> Tips:
        # In this order, a thread that is archived or packed in between is found at least once.
        # Archived refs last: they override active ones.
        loose = {prefix: self._read_loose(prefix) for prefix in (ACTIVE, ARCHIVE)}
        packed = self._read_packed()
        heads: dict[ThreadId, Oid] = {}
        bad: dict[ThreadId, str] = {}
        for prefix in (ACTIVE, ARCHIVE):
            heads |= packed.get(prefix, {})
            for thread, oid in loose[prefix].items():
                bad.pop(thread, None)
                if oid is None:
                    bad[thread] = prefix + thread
                else:
                    heads[thread] = oid
        for thread in bad:
            heads.pop(thread, None)
        ended = frozenset((*packed.get(ARCHIVE, ()), *loose[ARCHIVE])).difference(bad)
        return Tips(heads, tuple(bad.values()), ended)

    def _read_loose(self, prefix: str) -> dict[ThreadId, Oid | None]:
        loose = read_loose_refs(self._store.path, prefix)
        return {ThreadId(name): oid for name, oid in loose.items() if is_thread_id(name)}

    def _read_packed(self) -> dict[str, dict[ThreadId, Oid]]:
        """Read packed-refs again only when it was replaced: it may have 100,000 lines."""
        stamp = stamp_packed(self._store.path)
        if stamp == self._packed_stamp:
            return self._packed
        packed: dict[str, dict[ThreadId, Oid]] = {ACTIVE: {}, ARCHIVE: {}}
        for ref, oid in list_packed_refs(self._store.path, ACTIVE, ARCHIVE):
            prefix = ACTIVE if ref.startswith(ACTIVE) else ARCHIVE
            if is_thread_id(name := ref.removeprefix(prefix)):
                packed[prefix][ThreadId(name)] = oid
        self._packed_stamp, self._packed = stamp, packed
        return packed


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{found.st_ino}:{found.st_mtime_ns}:{found.st_ctime_ns}"
