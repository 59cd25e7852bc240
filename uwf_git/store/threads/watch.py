"""Poll the heads of all threads; read them only when the times of folders or packed-refs changed.

Times count as unchanged only after they stood still longer than the coarsest file system clock
ticks: a write in the tick of the last look leaves the same time (git's "racy" index entries).
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast

from uwf_git.model.names import Oid, ThreadId, is_thread_id
from uwf_git.store.durable import Stamp, read_stamp
from uwf_git.store.locks import PACKED_REFS, hold_lock
from uwf_git.store.refs import list_packed_refs, read_loose_refs, stamp_packed
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

# The journal: the order in which the transitions of all threads were first seen on this machine.
#
# It only grows, under its lock, so all readers of events see one order and can continue from a
# byte offset. Readers of events write it, steps do not. It can be deleted while nothing reads it;
# the next reader begins another, ordered by time. Format: FORMAT.md, "The journal of events".
#
# The first line is a header that no other journal has; then there are lines of three kinds:
#
#     known <thread> <commit>          where the thread ended when the journal was begun
#     moved <thread> <commit>          a transition
#     enter <thread> <commit> <JSON>   a turn that began after that commit

Word = Literal["known", "moved", "enter"]

_FILE = "events"
_HEADER = re.compile(rb"# uwf events 1 [0-9a-f]{32}\n")
_HEADER_LENGTH = len(b"# uwf events 1 \n") + 32
_LINE = re.compile(
    rb"^(known|moved|enter) ([0-7][0-9A-HJKMNP-TV-Z]{25}) ([0-9a-f]{40})(?: (\{[^\n]*\}))?\n",
    re.MULTILINE,
)


class Line(NamedTuple):
    word: Word
    thread: ThreadId
    commit: Oid
    turn: str = ""
    """Of ``enter``: which role is played since when, as JSON."""

    @property
    def told(self) -> dict[str, Any]:
        turn: dict[str, Any] = json.loads(self.turn)
        return turn


class Journal:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._header = os.pread(descriptor, _HEADER_LENGTH, 0)

    @property
    def name(self) -> str:
        """The header, which identifies this journal; "" before a journal is begun."""
        return self._header.decode() if _HEADER.fullmatch(self._header) else ""

    def begin(self, lines: Iterable[Line]) -> None:
        os.ftruncate(self._descriptor, 0)
        self._header = b"# uwf events 1 " + os.urandom(16).hex().encode() + b"\n"
        _write(self._descriptor, self._header + _encode(lines), 0)

    def read(self, start: int) -> tuple[list[Line], int] | None:
        """Return the lines from byte *start* on (0: the first line), and where they end.

        None: not a journal's content. A last line without a newline is ignored: its writer was
        killed.
        """
        start = max(start, _HEADER_LENGTH)
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(start)
            content = file.read()
        content = content[: content.rfind(b"\n") + 1]
        found = _LINE.findall(content)
        if len(found) != content.count(b"\n"):
            return None
        lines = [
            Line(word.decode(), ThreadId(thread.decode()), Oid(oid.decode()), turn.decode())
            for word, thread, oid, turn in found
        ]
        return lines, start + len(content)

    def append(self, lines: Iterable[Line], at: int) -> int:
        """Write *lines* at byte *at*, where the last whole line ended; return where they end."""
        content = _encode(lines)
        os.ftruncate(self._descriptor, at)
        _write(self._descriptor, content, at)
        return at + len(content)


@contextmanager
def hold_journal(store: Store) -> Iterator[Journal]:
    with hold_lock(store.local_path(_FILE), wait=True) as descriptor:
        # It was waited for.
        yield Journal(cast("int", descriptor))


def _encode(lines: Iterable[Line]) -> bytes:
    return "".join(" ".join(part for part in line if part) + "\n" for line in lines).encode()


def _write(descriptor: int, content: bytes, at: int) -> None:
    with open(descriptor, "r+b", closefd=False) as file:
        file.seek(at)
        file.write(content)


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
        self._stamp: list[Stamp | None] = []
        self._since = self._looked = float("-inf")
        self._packed_stamp: str | None = None
        self._packed: dict[str, dict[ThreadId, Oid]] = {}

    def look(self) -> Tips | None:
        """Return the heads; None if nothing can have changed since the last look."""
        paths = (os.path.join(self._store.path, each) for each in (ACTIVE, ARCHIVE, PACKED_REFS))
        now, stamp = self._clock(), [*map(read_stamp, paths)]
        if stamp != self._stamp:
            self._stamp, self._since = stamp, now
        elif self._looked > self._since + _TICK_S:
            return None
        self._looked = now
        return self._read()

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
