"""Output files: what a program writes into a file, read while the file grows."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

_CHUNK_BYTES = 64 * 1024
_READ_BYTES = 1024 * 1024


@dataclass(slots=True)
class OutputFile:
    """An open output file, and how far it has been read."""

    descriptor: int
    offset: int = 0

    def size(self) -> int:
        """Return the present size in bytes."""
        return os.fstat(self.descriptor).st_size

    def read_new(self, *, limit: int | None = None) -> Iterator[bytes]:
        """Yield what came since the last call, in chunks, but nothing behind byte *limit*."""
        size = self.size() if limit is None else min(self.size(), limit)
        if size < self.offset:
            # `echo … >/dev/stderr` truncates the file, where it would write to a terminal.
            self.offset = 0
        while self.offset < size:
            length = min(_CHUNK_BYTES, size - self.offset)
            chunk = os.pread(self.descriptor, length, self.offset)
            if not chunk:
                return
            self.offset += len(chunk)
            yield chunk

    def read(self, start: int, length: int) -> bytes:
        """Return at most *length* bytes from byte *start* on."""
        chunks = []
        while length > 0 and (chunk := os.pread(self.descriptor, min(length, _READ_BYTES), start)):
            chunks.append(chunk)
            start += len(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def read_tail(self, length: int) -> bytes:
        """Return the last *length* bytes."""
        return self.read(max(0, self.size() - length), length)

    def close(self) -> None:
        """Close the file; it stays on disk."""
        os.close(self.descriptor)


def create_output(path: str) -> OutputFile:
    """Create the empty file *path*; an older one is replaced, not truncated."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    # Scripts truncate at /dev/stdout and /dev/stderr; without O_APPEND that would leave a hole.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    return OutputFile(os.open(path, flags, 0o600))
