"""File locks: who may work, told by the kernel and forgotten when a process dies.

Owns: flock on small files. Knows nothing of: threads, refs.
Always true: a lock is held by a living process, so a reused pid or a crash never blocks; what
the file says about its holder is for people and never decides. A child that is forked while
another Python thread holds a lock does not keep it: it would, until it ends, for nobody.
Only this module would change for a system without flock(2): on Windows everything can be
imported, and the first lock is refused with a clear line.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.errors import StoreFailed

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows)
    # A module by type; None says that it is not there.
    fcntl = None  # type: ignore[assignment]

_OPEN: set[int] = set()
"""The lock files that this process has open."""


class LockingUnsupported(StoreFailed):
    """The file system under the store has no flock."""

    code = "no-locking"

    def __init__(self, path: str) -> None:
        what = "system" if fcntl is None else "file system"
        super().__init__(
            f"the {what} of {path} has no file locks (flock)",
            hint="keep the store on a local file system of a Unix (Windows: in WSL): "
            "`uwf --repo PATH …` or $UWF_REPO",
            path=path,
        )


class NoLockFile(StoreFailed):
    """Something else than a file has the name of a lock."""

    code = "no-lock-file"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is no file of uwf's: it is a link, a folder or the like",
            hint="look who put it there, then remove it; locks are made anew",
            path=path,
        )


@contextmanager
def hold_lock(path: str, *, wait: bool) -> Iterator[int | None]:
    """Hold the lock file at *path*, which is made if it is missing.

    Yields:
        The open file, or None if another process holds the lock and *wait* is false.

    Raises:
        LockingUnsupported: the file system has no flock.
        NoLockFile: there is something else in its place.
    """
    descriptor = _open_locked(path, wait=wait)
    try:
        yield descriptor
    finally:
        # Closing frees it. Never LOCK_UN: a child that shares the file would lose it too.
        if descriptor is not None:
            _close(descriptor)


def is_held(path: str) -> bool:
    """Tell whether another process holds the lock file at *path*, which is made if it is missing.

    Whoever asks holds it for a moment.

    Raises:
        As ``hold_lock``.
    """
    with hold_lock(path, wait=False) as descriptor:
        return descriptor is None


def _open_locked(path: str, *, wait: bool) -> int | None:
    if fcntl is None:
        raise LockingUnsupported(path)
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            _close(descriptor)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return None
            if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise LockingUnsupported(path) from error
            raise
        if _is_at(descriptor, path):
            return descriptor
        # Its last holder removed the file while we waited: the name has another file now.
        _close(descriptor)


def _open(path: str) -> int:
    try:
        descriptor = _open_here(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = _open_here(path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoLockFile(path)
    _OPEN.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    # In this order: the number may be another file's as soon as it is closed.
    _OPEN.discard(descriptor)
    os.close(descriptor)


def _let_go_in_child() -> None:
    """Close what a forked child has of our locks; a program that is started never gets there."""
    for descriptor in _OPEN:
        with suppress(OSError):
            os.close(descriptor)
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def _open_here(path: str) -> int:
    # Holders write into their locks: through a link that somebody put into a shared store, that
    # would be into any file of theirs.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO}:
            raise NoLockFile(path) from error
        raise


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
