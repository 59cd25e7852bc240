"""What was read from a file, kept until the file changes, so that many steps read it once.

A file counts as unchanged while its stamp is the same: device, inode, size, mtime, ctime. This
cannot miss a change. Who writes into a file, or renames another over it, sets a ctime, which no
program can set back. A change in the same tick of the clock would leave the same stamp, so what
changed a moment before it was read is not kept. On a network file system a stamp may be some
seconds old, as it is for git, which asks packed-refs in the same way.
Source: stat(2); git's racy-git.txt, stat_validity_check in read-cache.c.
"""

import os
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")

# Ticks are at most 10 ms; file systems that count in seconds show no fractions.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 3_000_000_000
_NS_PER_S = 1_000_000_000


class Stamp(NamedTuple):
    """What changes whenever a file or a folder does."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def read_stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_settled(stamp: Stamp | None, *, now_ns: int) -> bool:
    if stamp is None:
        return True
    changed_ns = max(stamp.mtime_ns, stamp.ctime_ns)
    is_coarse = changed_ns % _NS_PER_S == 0
    return now_ns - changed_ns > (_COARSE_TICK_NS if is_coarse else _TICK_NS)


class FileMemory(Generic[Value]):
    """A value for each of the files that were read last; values of larger files are not kept.

    Python threads may share it, for each call on the dictionary is atomic; a forked child has its
    own copy.
    """

    def __init__(
        self, most: int, *, largest: int = 256 * 1024, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._most, self._largest, self._now_ns = most, largest, now_ns
        self._held: dict[str, tuple[Stamp | None, Value]] = {}

    def read(self, path: str, read: Callable[[str], Value]) -> Value:
        """Return what *read* returns for *path*, or returned when the file was as it is now.

        The value is shared: nobody may change it. If *read* raises, nothing is kept.
        """
        # The time and the stamp first: what changes while it is read has another stamp afterwards.
        now_ns = self._now_ns()
        try:
            stamp = read_stamp(path)
        except OSError:
            # Reading it says what is wrong.
            return read(path)
        held = self._held.get(path)
        if held is not None and held[0] == stamp:
            return held[1]
        value = read(path)
        is_small = stamp is None or stamp.size <= self._largest
        if is_small and is_settled(stamp, now_ns=now_ns):
            self._held.pop(path, None)
            while len(self._held) >= self._most:
                self._held.pop(next(iter(self._held), path), None)
            self._held[path] = stamp, value
        return value
