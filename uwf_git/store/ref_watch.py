"""Ref watch: where all threads end, asked again and again.

Owns: telling cheaply that nothing has changed, and reading all heads when something may have.
Knows nothing of: commits, what a change means.
Always true: no change is overlooked for long. The times of folders and files say that nothing has
changed only when they stood still for longer than the coarsest clock of a file system ticks: what
is written in the tick in which we looked leaves no other time behind. An archived thread is
archived, whatever its active ref says.
Source: gitrepository-layout(5), git-pack-refs(1); git's "racy" index entries.
"""

import os
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.keeping_refs import stamp_packed
from uwf_git.store.packed_refs import read_packed_refs
from uwf_git.store.ref_listing import list_refs
from uwf_git.store.ref_lock import PACKED_REFS
from uwf_git.store.refs import Oid, loose_names, read_loose
from uwf_git.store.store import Store

# FAT counts in two seconds, and nothing that git lives on is coarser.
_TICK_S = 2.0

_PACKED = re.compile(
    rb"^([0-9a-f]{40}) (refs/(?:threads|archive)/)([0-7][0-9A-HJKMNP-TV-Z]{25})\n", re.MULTILINE
)


class Tips(NamedTuple):
    """Where the threads of a store end."""

    heads: dict[ThreadId, Oid]
    bad: tuple[str, ...] = ()
    """The refs of threads that hold no object id."""


class RefWatch:
    """A watch over the threads of one store."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._stamp: tuple[str, ...] = ()
        self._since = self._looked = float("-inf")
        self._packed_stamp: str | None = None
        self._packed: dict[str, dict[ThreadId, Oid]] = {}

    def look(self) -> Tips | None:
        """Give where the threads end; None if that cannot have changed since the last look."""
        if not self._store.is_kept:
            return Tips({**self._listed(ACTIVE), **self._listed(ARCHIVE)})
        now, stamp = self._clock(), self._read_stamp()
        if stamp != self._stamp:
            self._stamp, self._since = stamp, now
        elif self._looked > self._since + _TICK_S:
            return None
        self._looked = now
        return self._read()

    def _listed(self, prefix: str) -> dict[ThreadId, Oid]:
        refs = list_refs(self._store, prefix)
        return {ThreadId(name): oid for name, oid in refs.items() if is_thread_id(name)}

    def _read_stamp(self) -> tuple[str, ...]:
        folders = (_stamp(os.path.join(self._store.path, each)) for each in (ACTIVE, ARCHIVE))
        return (*folders, stamp_packed(self._store))

    def _read(self) -> Tips:
        # In this order a thread that is archived or packed in between is in one place at least.
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
        return Tips(heads, tuple(bad.values()))

    def _read_loose(self, prefix: str) -> dict[ThreadId, Oid | None]:
        folder = os.path.join(self._store.path, prefix)
        found: dict[ThreadId, Oid | None] = {}
        for name in loose_names(folder):
            if not is_thread_id(name):
                continue
            try:
                found[ThreadId(name)] = read_loose(os.path.join(folder, name))
            except FileNotFoundError:
                continue
        return found

    def _read_packed(self) -> dict[str, dict[ThreadId, Oid]]:
        """Read packed-refs again only when there is another one: it may have 100,000 lines."""
        stamp = stamp_packed(self._store)
        if stamp == self._packed_stamp:
            return self._packed
        packed: dict[str, dict[ThreadId, Oid]] = {ACTIVE: {}, ARCHIVE: {}}
        content = read_packed_refs(os.path.join(self._store.path, PACKED_REFS))
        for oid, prefix, name in _PACKED.findall(content):
            packed[prefix.decode()][ThreadId(name.decode())] = Oid(oid.decode())
        self._packed_stamp, self._packed = stamp, packed
        return packed


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{found.st_ino}:{found.st_mtime_ns}:{found.st_ctime_ns}"
