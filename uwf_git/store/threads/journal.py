"""The journal: the order in which the transitions of all threads were first seen on this machine.

It only grows, under its lock, so all readers of events see one order and can continue from a byte
offset. Readers of events write it, steps do not. It can be deleted while nothing reads it; the next
reader begins another, ordered by time.
Format: FORMAT.md, "The journal of events".

The first line is a header that no other journal has; then there are lines of three kinds:

    known <thread> <commit>          where the thread ended when the journal was begun
    moved <thread> <commit>          a transition
    enter <thread> <commit> <JSON>   a turn that began after that commit
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from uwf_git.model.names import ThreadId
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

Word = Literal["known", "moved", "enter"]

_FILE = "events"
_HEADER = re.compile(rb"# uwf events 1 [0-9a-f]{32}\n")
_HEADER_LENGTH = len(b"# uwf events 1 \n") + 32
_LINE = re.compile(
    rb"^(known|moved|enter) ([0-7][0-9A-HJKMNP-TV-Z]{25}) ([0-9a-f]{40})(?: (\{[^\n]*\}))?\n",
    re.MULTILINE,
)
_CHUNK = 1024 * 1024


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
        _write_all(self._descriptor, self._header + _encode(lines), 0)

    def read(self, start: int) -> tuple[list[Line], int] | None:
        """Return the lines from byte *start* on (0: the first line), and where they end.

        None: not a journal's content. A last line without a newline is ignored: its writer was
        killed.
        """
        content = _read_all(self._descriptor, max(start, _HEADER_LENGTH))
        content = content[: content.rfind(b"\n") + 1]
        found = _LINE.findall(content)
        if len(found) != content.count(b"\n"):
            return None
        lines = [
            Line(word.decode(), ThreadId(thread.decode()), Oid(oid.decode()), turn.decode())
            for word, thread, oid, turn in found
        ]
        return lines, max(start, _HEADER_LENGTH) + len(content)

    def append(self, lines: Iterable[Line], at: int) -> int:
        """Write *lines* at byte *at*, where the last whole line ended; return where they end."""
        content = _encode(lines)
        os.ftruncate(self._descriptor, at)
        _write_all(self._descriptor, content, at)
        return at + len(content)


@contextmanager
def hold_journal(store: Store) -> Iterator[Journal]:
    with hold_lock(store.local_path(_FILE), wait=True) as descriptor:
        if descriptor is None:  # pragma: no cover (wait=True always yields a file)
            raise BlockingIOError
        yield Journal(descriptor)


def _encode(lines: Iterable[Line]) -> bytes:
    return "".join(" ".join(part for part in line if part) + "\n" for line in lines).encode()


def _read_all(descriptor: int, start: int) -> bytes:
    chunks = []
    while chunk := os.pread(descriptor, _CHUNK, start):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


def _write_all(descriptor: int, content: bytes, at: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view[:_CHUNK], at)
        view = view[written:]
        at += written
