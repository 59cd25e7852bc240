"""Growing files: what others write is read while they write it.

Owns: one file, whatever becomes of it: it comes late, shrinks, is replaced or removed.
Knows nothing of: what is in it, who writes.
Always true: nothing is waited for; what was there when it was looked at is given once.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

_CHUNK_BYTES = 64 * 1024

_NEWLINE = b"\n"


class GrowingFile:
    """A file that is read as it grows."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._offset = 0
        self._open()

    def close(self) -> None:
        """Read no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read_new(self) -> Iterator[bytes]:
        """Give what has come since it was last asked, piece by piece."""
        yield from self._read_on()
        if self._is_replaced():
            # What came to the old one between the two looks.
            yield from self._read_on()
            self.close()
            self._open()
            yield from self._read_on()

    def count_last_lines(self, most: int) -> int:
        """Stand before the last lines, at most so many; tell how many these are."""
        size = self._size()
        start = self._offset = size
        lines = 0
        while start > 0 and self._descriptor is not None:
            length = min(_CHUNK_BYTES, start)
            chunk = os.pread(self._descriptor, length, start - length)
            end = len(chunk)
            # The newline at the very end begins no line.
            while (found := chunk.rfind(_NEWLINE, 0, end)) >= 0:
                if start - length + found + 1 < size:
                    lines += 1
                    if lines > most:
                        return most
                    self._offset = start - length + found + 1
                end = found
            start -= length
        if size and lines < most:
            self._offset = 0
            lines += 1
        return lines

    def read_before(self, length: int) -> bytes:
        """Give what is before where it stands, at most so many bytes."""
        if self._descriptor is None:
            return b""
        start = max(0, self._offset - length)
        return os.pread(self._descriptor, self._offset - start, start)

    def _open(self) -> None:
        self._offset = 0
        with suppress(OSError):
            # A pipe in its place must not keep us waiting.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._descriptor = descriptor
            else:
                os.close(descriptor)

    def _size(self) -> int:
        return 0 if self._descriptor is None else os.fstat(self._descriptor).st_size

    def _read_on(self) -> Iterator[bytes]:
        size = self._size()
        if size < self._offset:
            # `echo … >/dev/stderr` truncates the file, where it would write to a terminal.
            self._offset = 0
        while self._descriptor is not None and self._offset < size:
            length = min(_CHUNK_BYTES, size - self._offset)
            chunk = os.pread(self._descriptor, length, self._offset)
            if not chunk:
                return
            self._offset += len(chunk)
            yield chunk

    def _is_replaced(self) -> bool:
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return self._descriptor is None or not os.path.samestat(there, os.fstat(self._descriptor))
