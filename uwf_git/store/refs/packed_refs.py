"""Read packed-refs: find a name, list the names below a prefix, read whole rows.

In a file whose header says that it is sorted, as git's does, a look-up is a binary search over the
same lines that git looks at: both give the same answer even if the file is not sorted.
Source: gitrepository-layout(5), "packed-refs"; git's refs/packed-backend.c.
"""

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.store.disk.durable import read_if_there
from uwf_git.store.disk.file_memory import FileMemory
from uwf_git.store.disk.lockfile import PACKED_REFS
from uwf_git.store.oid import Oid

PACKED_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_ANY_HEADER = b"# pack-refs with:"
_OID_LENGTH = 40
_SHORTEST_LINE = _OID_LENGTH + len(" r\n")

# Rows that git can read, as many as follow one another; possessive, since there may be 100,000.
_ROWS = re.compile(rb"(?:[0-9a-fA-F]{40}[ \t\r][^\n]++\n(?:\^[0-9a-fA-F]{40}\n)?+)*+")

# A look-up takes as long as reading some twenty rows one after the other.
_ROWS_A_LOOKUP = 20
_SHORTEST_ROW = 70

_LARGEST_READ = 512 * 1024

# The characters that a ref name may have (git-check-ref-format); git lists no line with others.
_NAME = r"([^\x00-\x20\x7f~^:?*\[\\]+)"


PACKED_HINT = (
    "`git for-each-ref` says what git makes of it; copy the file, then remove or mend that line: "
    "each row is an object id, a space, a name"
)


class BadPackedRefs(StoreDamaged):
    code = "bad-packed-refs"

    def __init__(self, path: str, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"{path} {problem}",
            hint=PACKED_HINT,
            path=path,
        )


class PackedRow(NamedTuple):
    oid: bytes
    name: bytes
    peeled: bytes
    """The object that a tag points at; b"" if the row does not say."""


def read_packed_refs(git_dir: str) -> bytes:
    return read_if_there(os.path.join(git_dir, PACKED_REFS))


def read_header(content: bytes) -> bytes:
    return content[: content.find(b"\n") + 1] if content.startswith(b"#") else b""


def list_packed_refs(git_dir: str, *prefixes: str) -> Iterator[tuple[str, Oid]]:
    """Yield the full name and object id of each packed ref below one of *prefixes*, in file order.

    Each prefix ends in a slash.
    """
    content = read_packed_refs(git_dir)
    _check_rows(os.path.join(git_dir, PACKED_REFS), content, len(read_header(content)))
    below = b"|".join(re.escape(os.fsencode(prefix)) for prefix in prefixes)
    for oid, name, _peeled in _row_pattern(b"(?:" + below + rb")[^\n]+").findall(content):
        yield os.fsdecode(name), Oid(oid.decode().lower())


def _check_rows(path: str, content: bytes | mmap.mmap, start: int) -> None:
    """Raise BadPackedRefs if *content* behind *start* has a bad line: a search could miss rows."""
    good = _ROWS.match(content, start)
    if good is not None and good.end() < len(content):
        raise _bad_line(path, content[good.end() :])


def _bad_line(path: str, rest: bytes) -> BadPackedRefs:
    line = rest.split(b"\n", 1)[0]
    return BadPackedRefs(path, f"has a line that names no ref: {line[:60]!r}")


def parse_packed_refs(path: str, content: bytes) -> Iterator[PackedRow]:
    row = _row_pattern(rb"refs/[^\n]+")
    at = len(read_header(content))
    while at < len(content):
        match = row.match(content, at)
        if match is None:
            raise _bad_line(path, content[at:])
        yield PackedRow(*match.groups(default=b""))
        at = match.end()


def remove_packed_row(content: bytes, name: str) -> bytes:
    return _row_pattern(re.escape(os.fsencode(name))).sub(b"", content)


def change_packed_rows(path: str, content: bytes, changes: Mapping[str, Oid | None]) -> bytes:
    """Return *content*, of packed-refs at *path*, with *changes*; None removes a row."""
    header = read_header(content) if content else PACKED_HEADER
    rows = {row.name: row for row in parse_packed_refs(path, content)}
    for name, oid in changes.items():
        raw = os.fsencode(name)
        rows.pop(raw, None)
        if oid is not None:
            rows[raw] = PackedRow(oid.encode(), raw, b"")
    ordered = sorted(rows) if b" sorted" in header else rows
    lines = (
        b"%s %s\n" % (rows[raw].oid, raw)
        + (b"^%s\n" % rows[raw].peeled if rows[raw].peeled else b"")
        for raw in ordered
    )
    return header + b"".join(lines)


def open_packed_refs(path: str) -> "PackedRefs":
    """Return the packed-refs file at *path*; it is opened only if it has changed since."""
    return _OPENED.read(path, PackedRefs)


def _row_pattern(name: bytes) -> re.Pattern[bytes]:
    oid = rb"([0-9a-fA-F]{40})"
    return re.compile(
        rb"^" + oid + rb"[ \t\r](" + name + rb")\n(?:\^" + oid + rb"\n)?", re.MULTILINE
    )


class PackedRefs:
    """A packed-refs file as it was when it was opened; a missing file is empty."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._content = _map(path)
        self._start = 0
        self._is_sorted = False
        self._asked = 0
        self._rows: dict[bytes, bytes] | None = None
        if self._content[:1] == b"#":
            self._start = self._content.find(b"\n") + 1
            header = self._content[: self._start]
            if not header.startswith(_ANY_HEADER):
                raise BadPackedRefs(path, f"has no header that git would write: {header[:60]!r}")
            self._is_sorted = b"sorted" in header[len(_ANY_HEADER) : -1].split(b" ")
        self._end = len(self._content)
        if self._start < self._end:
            self._check_end(path)

    def _check_end(self, path: str) -> None:
        last = self._begin_of_line(self._start, self._end - 1)
        if self._content[self._end - 1 :] != b"\n" or self._end - last < _SHORTEST_LINE:
            raise BadPackedRefs(path, f"is cut short: {self._content[last:][:60]!r}")

    def find(self, name: str) -> bytes | None:
        """Return the 40 bytes before *name*, normally an object id; None if it is not there."""
        wanted = os.fsencode(name)
        if self._is_sorted:
            if self._rows is None and self._is_asked_often():
                self._rows = self._index_rows()
            if self._rows:
                return self._rows.get(wanted)
            at, is_there = self._bisect(wanted)
            return self._content[at : at + _OID_LENGTH] if is_there else None
        end = self._content.find(wanted + b"\n", self._start)
        while end >= 0:
            at = self._content.rfind(b"\n", self._start, end) + 1 or self._start
            if end - at == _OID_LENGTH + 1:
                return self._content[at : at + _OID_LENGTH]
            end = self._content.find(wanted + b"\n", end + 1)
        return None

    def _is_asked_often(self) -> bool:
        """Tell, at each look-up, whether reading all rows at once has paid by now."""
        self._asked += 1
        return self._asked * _ROWS_A_LOOKUP * _SHORTEST_ROW > self._end - self._start

    def _index_rows(self) -> dict[bytes, bytes]:
        """Return all rows by name; nothing unless a search finds the rows in the order of names."""
        whole = _ROWS.match(self._content, self._start)
        if whole is None or whole.end() < self._end:
            # git finds what its search happens upon.
            return {}
        rows = _row_pattern(rb"[^\n]+").findall(self._content, self._start)
        names = [name for _oid, name, _peeled in rows]
        in_order = all(name < later for name, later in pairwise(names))
        return {name: oid for oid, name, _peeled in rows} if in_order else {}

    def add_row(self, name: str, oid: Oid) -> bytes:
        row = oid.encode() + b" " + os.fsencode(name) + b"\n"
        if not self._content:
            return PACKED_HEADER + row
        at = self._bisect(os.fsencode(name))[0] if self._is_sorted else self._end
        return self._content[:at] + row + self._content[at:]

    def names(self, prefix: str) -> list[str]:
        wanted = os.fsencode(prefix)
        start, end = self._start, self._end
        if self._is_sorted:
            start, _there = self._bisect(wanted)
            # "0" is the next byte after "/".
            end, _there = self._bisect(wanted[:-1] + b"0")
        self.check()
        line = re.compile(f"^[^#^\n].{{39}}[ \t\r]{re.escape(prefix)}{_NAME}\n", re.MULTILINE)
        return line.findall(os.fsdecode(self._content[start:end]))

    def check(self) -> None:
        _check_rows(self._path, self._content, self._start)

    def _bisect(self, wanted: bytes) -> tuple[int, bool]:
        """Return where the row of *wanted* begins, or would begin, and whether it is there."""
        low, high = self._start, self._end
        while low < high:
            middle = (low + high) // 2
            at = self._begin_of_line(low, middle)
            name_at = at + _OID_LENGTH + 1
            name = self._content[name_at : self._content.find(b"\n", name_at)]
            if name == wanted:
                return at, True
            if name < wanted:
                low = self._end_of_line(middle, high)
            else:
                high = at
        return low, False

    def _begin_of_line(self, least: int, at: int) -> int:
        """Return where the row around *at* begins; a `^` line belongs to the row before it."""
        while True:
            at = max(self._content.rfind(b"\n", least, at) + 1, least)
            if at == least or self._content[at : at + 1] != b"^":
                return at
            at -= 1

    def _end_of_line(self, at: int, most: int) -> int:
        while True:
            at = self._content.find(b"\n", at, most) + 1
            if not at:
                return most
            if at == most or self._content[at : at + 1] != b"^":
                return at


# A mapping costs no memory of its own: the pages are those of the file.
_OPENED: FileMemory[PackedRefs] = FileMemory(8, largest=2**62)


def _map(path: str) -> bytes | mmap.mmap:
    """Read the file, or map it if large (git replaces it whole); a map keeps the disk mounted."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size <= _LARGEST_READ:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):
        # ValueError: the file is empty.
        return b""


def stamp_packed(git_dir: str) -> str:
    """Return a text that changes whenever packed-refs is replaced; "" if there is no such file."""
    try:
        found = os.stat(os.path.join(git_dir, PACKED_REFS))
    except FileNotFoundError:
        return ""
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
