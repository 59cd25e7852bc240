"""Hold a lock file with flock(2): the kernel frees it when the process dies.

A forked child closes its copies of held locks, so it cannot keep a lock alive. Without flock
(Windows) every module can be imported, and the first lock raises LockingUnsupported.
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
    # mypy: None in place of the module says that there is no flock.
    fcntl = None  # type: ignore[assignment]

_OPEN: set[int] = set()
"""The descriptors of the lock files that this process has open."""


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


def _no_lock_file(path: str) -> StoreFailed:
    return StoreFailed(
        f"{path} is not a regular file, so it cannot be a lock of uwf",
        code="no-lock-file",
        hint="find out what created it, then remove it; uwf creates its locks again",
        path=path,
    )


@contextmanager
def hold_lock(path: str, *, wait: bool, make: bool = True) -> Iterator[int | None]:
    """Hold the lock file at *path*, which is created if it is missing and *make* is true.

    Yields:
        The open file, or None if the lock is held elsewhere and *wait* is false.

    Raises:
        LockingUnsupported: the file system has no flock.
        StoreFailed: *path* is not a regular file.
        FileNotFoundError: it is missing, and *make* is false.
    """
    descriptor = take_lock(path, wait=wait, make=make)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            free_lock(descriptor)


def is_held(path: str) -> bool:
    """Check whether the lock file at *path* is held, by holding it for a moment if it is not.

    The file is created if it is missing.
    """
    with hold_lock(path, wait=False) as descriptor:
        return descriptor is None


def take_lock(path: str, *, wait: bool, make: bool = True) -> int | None:
    """Hold the lock file at *path* until `free_lock`; the rest is as in `hold_lock`."""
    if fcntl is None:
        raise LockingUnsupported(path)
    while True:
        descriptor = _open(path, make=make)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            free_lock(descriptor)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return None
            if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise LockingUnsupported(path) from error
            raise
        if _is_at(descriptor, path):
            return descriptor
        # The last holder removed the file while this process waited; open the new one.
        free_lock(descriptor)


def _open(path: str, *, make: bool) -> int:
    try:
        descriptor = _open_here(path, make=make)
    except FileNotFoundError:
        if not make:
            raise
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = _open_here(path, make=make)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_lock_file(path)
    _OPEN.add(descriptor)
    return descriptor


def free_lock(descriptor: int) -> None:
    """Release what `take_lock` returned; in a forked child, which has it no more, never call it."""
    # Closing releases it. Not LOCK_UN, which would release it for an inheriting child too.
    # In this order: once closed, the number may belong to another file.
    _OPEN.discard(descriptor)
    os.close(descriptor)


def _close_in_child() -> None:
    """Close the lock files in a forked child; a started program never inherits them."""
    for descriptor in _OPEN:
        with suppress(OSError):
            os.close(descriptor)
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _open_here(path: str, *, make: bool) -> int:
    # O_NOFOLLOW: holders write into their locks, and a symlink planted in a shared store would
    # make them write into any file of theirs.
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO}:
            raise _no_lock_file(path) from error
        raise


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
