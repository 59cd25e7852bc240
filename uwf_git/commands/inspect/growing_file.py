"""Read a file that another process appends to, without blocking.

The file may appear late, shrink, be replaced or removed. Each byte is returned once.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from uwf_git.agents.files import OutputFile, open_left_file

_CHUNK_BYTES = 64 * 1024

_NEWLINE = b"\n"


class GrowingFile:
    """A file that is read as it grows; it need not exist yet."""

    def __init__(self, path: str, *, most_bytes: int | None = None) -> None:
        """Open it, if it is there; what lies behind *most_bytes* is not read."""
        self.path = path
        self._most_bytes = most_bytes
        self._file: OutputFile | None = None
        self._open()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read_new(self) -> Iterator[bytes]:
        """Yield what came since the last call, in chunks."""
        yield from self._read_on()
        if self._is_replaced():
            # What came to the old file since.
            yield from self._read_on()
            self.close()
            self._open()
            yield from self._read_on()

    def count_last_lines(self, most: int) -> int:
        """Move to the last lines, at most *most*; return how many these are."""
        if self._file is None:
            return 0
        size = self._file.size()
        if self._most_bytes is not None:
            size = min(size, self._most_bytes)
        start = self._file.offset = size
        lines = 0
        while start > 0:
            length = min(_CHUNK_BYTES, start)
            chunk = self._file.read(start - length, length)
            end = len(chunk)
            # A newline at the end of the file begins no line.
            while (found := chunk.rfind(_NEWLINE, 0, end)) >= 0:
                if start - length + found + 1 < size:
                    lines += 1
                    if lines > most:
                        return most
                    self._file.offset = start - length + found + 1
                end = found
            start -= length
        if size and lines < most:
            self._file.offset = 0
            lines += 1
        return lines

    def read_before(self, length: int) -> bytes:
        """Return the bytes before the position, at most *length*."""
        if self._file is None:
            return b""
        start = max(0, self._file.offset - length)
        return self._file.read(start, self._file.offset - start)

    def _open(self) -> None:
        with suppress(OSError):
            self._file = open_left_file(self.path, follows_links=True)

    def _read_on(self) -> Iterator[bytes]:
        if self._file is not None:
            yield from self._file.read_new(limit=self._most_bytes)

    def _is_replaced(self) -> bool:
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return self._file is None or not os.path.samestat(there, os.fstat(self._file.descriptor))
