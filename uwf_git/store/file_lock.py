"""File locks: who may work, told by the kernel and forgotten when a process dies.

Owns: flock on small files. Knows nothing of: threads, refs.
Always true: a lock is held by a living process, so a reused pid or a crash never blocks; what
the file says about its holder is for people and never decides.
Only this module would change for a system without flock(2).
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from uwf_git.errors import StoreFailed


class LockingUnsupported(StoreFailed):
    """The file system under the store has no flock."""

    code = "no-locking"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the file system of {path} has no file locks (flock)",
            hint="keep the store on a local file system: `uwf --repo PATH …` or $UWF_REPO",
            path=path,
        )


@contextmanager
def hold_lock(path: str, *, wait: bool) -> Iterator[int | None]:
    """Hold the lock file at *path*, which is made if it is missing.

    Yields:
        The open file, or None if another process holds the lock and *wait* is false.

    Raises:
        LockingUnsupported: the file system has no flock.
    """
    descriptor = _open_locked(path, wait=wait)
    try:
        yield descriptor
    finally:
        # Closing frees it. Never LOCK_UN: a child that shares the file would lose it too.
        if descriptor is not None:
            os.close(descriptor)


def _open_locked(path: str, *, wait: bool) -> int | None:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            os.close(descriptor)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return None
            if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise LockingUnsupported(path) from error
            raise
        if _is_at(descriptor, path):
            return descriptor
        # Its last holder removed the file while we waited: the name has another file now.
        os.close(descriptor)


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
