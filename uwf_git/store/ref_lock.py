"""Ref locks: git's `<file>.lock`, taken so that our own dead leave none behind.

Owns: taking `<file>.lock` as git does (git-update-ref and git-pack-refs take it too), and
breaking one that a killed process of ours left.
Always true: a lock is broken only when it is proved ours: it is a hard link to our marker
below uwf/ref-locks/, and the guard (a flock) that its taker held is free.
"""

import errno
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from uwf_git.errors import Conflict
from uwf_git.store.durable import remove, write_temporary
from uwf_git.store.file_lock import hold_lock

_GUARDS = 64
_PATIENCE_S = 5.0
_PAUSE_S = 0.01
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class RefLocked(Conflict):
    """Another program holds git's lock on the file and does not let go."""

    code = "ref-locked"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is held by another git process",
            hint="try again; if no git process is running, that file is a leftover: remove it",
            path=path,
        )


@contextmanager
def hold_ref_lock(git_dir: str, name: str, content: bytes, *, durable: bool) -> Iterator[str]:
    """Hold `<git_dir>/<name>.lock`, a file with *content*; renaming it over the file commits.

    Yields:
        The path of the lock file. What is not renamed away is removed at the end.

    Raises:
        RefLocked: it stayed held by somebody else for five seconds.
    """
    markers = os.path.join(git_dir, "uwf", "ref-locks")
    lock = os.path.join(git_dir, name + ".lock")
    marker = os.path.join(markers, quote(name, safe=""))
    guard = os.path.join(markers, f"guard-{zlib.crc32(name.encode()) % _GUARDS:02}")
    with hold_lock(guard, wait=True):
        _break_own(lock, marker)
        temporary = write_temporary(markers, content, prefix=".tmp_", durable=durable)
        try:
            os.replace(temporary, marker)
            _take(marker, lock)
        except BaseException:
            remove(temporary)
            remove(marker)
            raise
        try:
            yield lock
        finally:
            # The marker goes last: while the lock is there, it is the proof that it is ours.
            _remove_if_same(lock, marker)
            remove(marker)


def _break_own(lock: str, marker: str) -> None:
    """Remove what a killed process of ours left; we hold the guard, so it is dead."""
    _remove_if_same(lock, marker)
    remove(marker)


def _remove_if_same(lock: str, marker: str) -> None:
    try:
        ours = os.path.samefile(lock, marker)
    except FileNotFoundError:
        return
    if ours:
        remove(lock)


def _take(marker: str, lock: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _link(marker, lock)
        except FileNotFoundError:
            # `git pack-refs` removes folders that it has emptied.
            os.makedirs(os.path.dirname(lock), exist_ok=True)
        except FileExistsError:
            if time.monotonic() > deadline:
                raise RefLocked(lock) from None
            time.sleep(_PAUSE_S)
        else:
            return


def _link(marker: str, lock: str) -> None:
    try:
        os.link(marker, lock)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _copy(marker, lock)


def _copy(marker: str, lock: str) -> None:
    """Take the lock on a file system without hard links; a kill then leaves it, as git's do."""
    with open(marker, "rb") as file, open(lock, "xb") as copy:
        copy.write(file.read())
        copy.flush()
        os.fsync(copy.fileno())
