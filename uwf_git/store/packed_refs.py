"""Packed refs: many names and what they point at, in one file.

Owns: finding one name in `packed-refs`, and those below a prefix. Writing it is refs.py's.
Knows nothing of: loose refs, what a name means.
Always true: in a file that says that it is sorted, as git's do, an answer costs the lines that it
looks at, however many there are; it looks at the same lines as git does, so that both give the
same answer even for a file that lies. In any other file every line is looked at.
Source: gitrepository-layout(5), "packed-refs"; git's refs/packed-backend.c.
"""

import mmap
import os
import re

from uwf_git.errors import StoreDamaged

_HEADER = b"# pack-refs with:"
_OID_LENGTH = 40
_SHORTEST_LINE = _OID_LENGTH + len(" r\n")

# What no name of a ref holds (git-check-ref-format): git leaves such a line out of a list.
_NAME = r"([^\x00-\x20\x7f~^:?*\[\\]+)"


class BadPackedRefs(StoreDamaged):
    """The packed-refs file is not one that git would read."""

    code = "bad-packed-refs"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} {problem}",
            hint="`git for-each-ref` says what git makes of it; nothing was changed",
            path=path,
        )


def read_packed_refs(path: str) -> bytes:
    """Read all of the file at *path*; none at all is an empty one."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


class PackedRefs:
    """A packed-refs file as it was when it was opened; none at all is an empty one."""

    def __init__(self, path: str) -> None:
        """Open the file at *path*.

        Raises:
            BadPackedRefs: it begins or ends as no such file does, so that git reads none of it.
        """
        self._content = _map(path)
        self._start = 0
        self._is_sorted = False
        if self._content[:1] == b"#":
            self._start = self._content.find(b"\n") + 1
            header = self._content[: self._start]
            if not header.startswith(_HEADER):
                raise BadPackedRefs(path, f"has no header that git would write: {header[:60]!r}")
            self._is_sorted = b"sorted" in header[len(_HEADER) : -1].split(b" ")
        self._end = len(self._content)
        if self._start < self._end:
            self._check_end(path)

    def _check_end(self, path: str) -> None:
        last = self._begin_of_line(self._start, self._end - 1)
        if self._content[self._end - 1 :] != b"\n" or self._end - last < _SHORTEST_LINE:
            raise BadPackedRefs(path, f"is cut short: {self._content[last:][:60]!r}")

    def find(self, name: str) -> bytes | None:
        """Give what stands before *name*, which should be an object id; None if it is not there."""
        wanted = os.fsencode(name)
        if self._is_sorted:
            at, is_there = self._bisect(wanted)
            return self._content[at : at + _OID_LENGTH] if is_there else None
        end = self._content.find(wanted + b"\n", self._start)
        while end >= 0:
            at = self._content.rfind(b"\n", self._start, end) + 1 or self._start
            if end - at == _OID_LENGTH + 1:
                return self._content[at : at + _OID_LENGTH]
            end = self._content.find(wanted + b"\n", end + 1)
        return None

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), prefix left off, in file order."""
        wanted = os.fsencode(prefix)
        start, end = self._start, self._end
        if self._is_sorted:
            start, _there = self._bisect(wanted)
            # A zero is what follows a slash.
            end, _there = self._bisect(wanted[:-1] + b"0")
        line = re.compile(f"^[^#^\n].{{39}}[ \t\r]{re.escape(prefix)}{_NAME}\n", re.MULTILINE)
        return line.findall(os.fsdecode(self._content[start:end]))

    def _bisect(self, wanted: bytes) -> tuple[int, bool]:
        """Give where the line of *wanted* begins, or would; and whether it is there."""
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
        """Give where the line around *at* begins; a line of what a tag peels to goes with it."""
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


def _map(path: str) -> bytes | mmap.mmap:
    """Map the file: git replaces it, and never changes it, so that it stays what it was."""
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):
        # ValueError: it is empty.
        return b""
