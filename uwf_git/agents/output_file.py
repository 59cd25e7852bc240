"""Output files: what a program writes into a file, read while the file grows."""

import errno
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

_CHUNK_BYTES = 64 * 1024
_READ_BYTES = 1024 * 1024

# FS_IOC_RESVSP and its `struct space_resv` (linux/falloc.h): fallocate(2) with
# FALLOC_FL_KEEP_SIZE, for which Python has no call.
_RESERVE = 0x40305828
_SPACE = struct.Struct("@hhqqiI4i")
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


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


def create_output(path: str, *, reserved_bytes: int = 0) -> OutputFile:
    """Create the empty file *path*; an older one is replaced, not truncated.

    *reserved_bytes* can then be written to it though the disk is full; see ``reserve``.

    Raises:
        OSError: the system refused, or has no such room; no file is left.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)
    # Scripts truncate at /dev/stdout and /dev/stderr; without O_APPEND that would leave a hole.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    output = OutputFile(os.open(path, flags, 0o600))
    try:
        if reserved_bytes:
            reserve(output.descriptor, reserved_bytes)
    except OSError as error:
        output.close()
        os.unlink(path)
        raise OSError(error.errno, error.strerror, path) from None
    return output


def reserve(descriptor: int, length: int) -> None:
    """Reserve *length* bytes on the disk for an empty file, whose size stays 0.

    A truncation gives them back. Where the system cannot reserve (not Linux, NFS), nothing is done.

    Raises:
        OSError: the disk, or the user's share of it, is full.
    """
    if sys.platform != "linux":
        return
    import fcntl  # noqa: PLC0415 (Windows has none, and reads files by this module)

    try:
        fcntl.ioctl(descriptor, _RESERVE, _SPACE.pack(0, os.SEEK_SET, 0, length, *[0] * 6))
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
