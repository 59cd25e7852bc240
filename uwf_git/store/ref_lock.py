"""Ref locks: git's `<file>.lock`, taken so that our own dead leave none behind.

Owns: taking `<file>.lock` as git does (git-update-ref and git-pack-refs take it too), and
breaking one that a killed process of ours left.
Always true: a lock is broken only when it is proved ours: it is a hard link to our marker
below uwf/ref-locks/, and the guard (a flock) that its taker held is free.
Guards are taken in one order, and that of packed-refs, which is needed while a ref is held,
is nobody else's and comes last: so nothing waits in a circle.
"""

import errno
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import quote, unquote

from uwf_git.errors import Conflict
from uwf_git.store.durable import TEMPORARY, make_folder, remove, write_temporary
from uwf_git.store.file_lock import hold_lock

PACKED_REFS = "packed-refs"

# What else than refs git locks in this way, and we with it.
_OTHERS = {PACKED_REFS, "config"}
_GUARD = "guard-"
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
    with hold_ref_locks(git_dir, {name: content}, durable=durable) as locks:
        yield locks[0]


@contextmanager
def hold_ref_locks(
    git_dir: str, contents: Mapping[str, bytes], *, durable: bool
) -> Iterator[list[str]]:
    """Hold the locks of several files at once; *contents* has their names and contents.

    Yields:
        The paths of the lock files, in the order of *contents*.

    Raises:
        RefLocked: one of them stayed held by somebody else for five seconds.
    """
    _break_dead(git_dir, PACKED_REFS)
    with ExitStack() as stack:
        # In one order, whatever the names: two processes never wait for each other.
        for guard in sorted({_guard(name) for name in contents}):
            stack.enter_context(hold_lock(os.path.join(markers(git_dir), guard), wait=True))
        yield [
            stack.enter_context(_hold(git_dir, name, content, durable=durable))
            for name, content in contents.items()
        ]


@contextmanager
def _hold(git_dir: str, name: str, content: bytes, *, durable: bool) -> Iterator[str]:
    lock, marker = _paths(git_dir, name)
    _break_own(lock, marker)
    # A lock without content is never renamed into place: there is nothing to lose.
    durable = durable and bool(content)
    temporary = write_temporary(markers(git_dir), content, prefix=TEMPORARY, durable=durable)
    try:
        os.replace(temporary, marker)
        taken = _take(marker, lock)
    except BaseException:
        remove(temporary)
        remove(marker)
        raise
    try:
        yield lock
    finally:
        # The marker goes last: while the lock is there, it is the proof that it is ours.
        _remove_if_same(lock, taken)
        remove(marker)


def markers(git_dir: str) -> str:
    """Give the folder of the markers and guards, where temporary files may lie as well."""
    return os.path.join(git_dir, "uwf", "ref-locks")


def _paths(git_dir: str, name: str) -> tuple[str, str]:
    """Give the lock of *name* and its marker."""
    return (
        os.path.join(git_dir, name + ".lock"),
        os.path.join(markers(git_dir), quote(name, safe="")),
    )


def _guard(name: str) -> str:
    # Taken while a ref's guard is held: were it one of the shared ones, it could be the same.
    if name == PACKED_REFS:
        return f"{_GUARD}packed-refs"
    return f"{_GUARD}{zlib.crc32(name.encode(errors='surrogateescape')) % _GUARDS:02}"


def break_dead_locks(git_dir: str) -> int:
    """Break every lock that a killed process of ours left; tell how many markers that were.

    Each is broken when its file is next locked, too; some files never are again.
    """
    try:
        names = sorted(os.listdir(markers(git_dir)))
    except FileNotFoundError:
        return 0
    return sum(_break_dead(git_dir, unquote(name)) for name in names if _is_marker(name))


def _is_marker(name: str) -> bool:
    """Tell whether a file may be a marker of ours, wherever somebody made the folder lead."""
    locked = unquote(name)
    is_ref = locked.startswith("refs/") and ".." not in locked
    return quote(locked, safe="") == name and (is_ref or locked in _OTHERS)


def _break_dead(git_dir: str, name: str) -> bool:
    """Break the lock of *name* if a killed process of ours left it, and tell whether one did.

    That of a ref is broken when the ref is next locked; packed-refs may not be locked again for
    a long time, and until then no git could pack or delete a ref.
    """
    lock, marker = _paths(git_dir, name)
    if not os.path.lexists(marker):
        return False
    with hold_lock(os.path.join(markers(git_dir), _guard(name)), wait=False) as guard:
        if guard is None:
            return False
        _break_own(lock, marker)
        return True


def _break_own(lock: str, marker: str) -> None:
    """Remove what a killed process of ours left; we hold the guard, so it is dead."""
    try:
        left = os.stat(marker)
    except FileNotFoundError:
        return
    _remove_if_same(lock, left)
    remove(marker)


def _remove_if_same(lock: str, taken: os.stat_result) -> None:
    try:
        ours = os.path.samestat(os.stat(lock), taken)
    except FileNotFoundError:
        return
    if ours:
        remove(lock)


def _take(marker: str, lock: str) -> os.stat_result:
    """Make *lock* and tell which file it is."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _link(marker, lock)
        except FileNotFoundError:
            # `git pack-refs` removes folders that it has emptied.
            make_folder(os.path.dirname(lock), durable=True)
        except FileExistsError:
            if time.monotonic() > deadline:
                raise RefLocked(lock) from None
            time.sleep(_PAUSE_S)
        else:
            return os.stat(lock)


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
