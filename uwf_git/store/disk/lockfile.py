"""Hold git's `<file>.lock`, and break one that a killed uwf process left.

Each lock is a hard link to a marker of the same file below uwf/ref-locks/, and its holder also
holds a guard (a flock). A lock is broken only if it is that hard link and the guard is free.
No deadlock: guards are taken in one order, and the guard of packed-refs, which is taken while
refs are held, is shared with no ref and comes last.
"""

import errno
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import unquote

from uwf_git.errors import Conflict
from uwf_git.store.disk.durable import TEMPORARY, make_folder, remove_file, write_temporary
from uwf_git.store.disk.file_lock import hold_lock

PACKED_REFS = "packed-refs"

# The other files that git and uwf lock in this way.
_OTHERS = {PACKED_REFS, "config"}
_GUARD = "guard-"
_SPECIAL = re.compile(r"[^A-Za-z0-9_.~-]+")
_GUARDS = 64
_PATIENCE_S = 5.0
_PAUSE_S = 0.01
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class RefLocked(Conflict):
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
        The path of the lock file. If it is not renamed, it is removed at the end.
    """
    with hold_ref_locks(git_dir, {name: content}, durable=durable) as locks:
        yield locks[0]


@contextmanager
def hold_ref_locks(
    git_dir: str, contents: Mapping[str, bytes], *, durable: bool
) -> Iterator[list[str]]:
    """Hold the locks of several files of these *contents*; yield the paths in that order."""
    _break_dead(git_dir, PACKED_REFS)
    with ExitStack() as stack:
        # Sorted, so that two processes never wait for each other.
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
    # An empty lock is never renamed over its file, so it needs no fsync.
    durable = durable and bool(content)
    temporary = write_temporary(markers(git_dir), content, prefix=TEMPORARY, durable=durable)
    try:
        os.replace(temporary, marker)
        taken = _take(marker, lock)
    except BaseException:
        remove_file(temporary)
        remove_file(marker)
        raise
    try:
        yield lock
    finally:
        # The marker goes last: it proves that the lock is ours.
        _remove_if_same(lock, taken)
        remove_file(marker)


def markers(git_dir: str) -> str:
    return os.path.join(git_dir, "uwf", "ref-locks")


def _paths(git_dir: str, name: str) -> tuple[str, str]:
    return (
        os.path.join(git_dir, name + ".lock"),
        os.path.join(markers(git_dir), _quote(name)),
    )


def _guard(name: str) -> str:
    # Its own guard: it is taken while the guard of a ref is held, which must not be the same.
    if name == PACKED_REFS:
        return f"{_GUARD}packed-refs"
    return f"{_GUARD}{zlib.crc32(name.encode(errors='surrogateescape')) % _GUARDS:02}"


def break_dead_locks(git_dir: str) -> int:
    """Break every lock that a killed uwf process left; return how many markers there were.

    Locking a file breaks its dead lock too, but some files are never locked again.
    """
    try:
        names = sorted(os.listdir(markers(git_dir)))
    except FileNotFoundError:
        return 0
    locked = {name: unquote(name) for name in names}
    return sum(
        _break_dead(git_dir, locked[name]) for name in names if _is_marker(name, locked[name])
    )


def _quote(name: str) -> str:
    """Return *name* as a file name: ``urllib.parse.quote`` of it, with no character left out."""
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def _is_marker(name: str, locked: str) -> bool:
    """Check that *name* names a marker of *locked*; a planted marker must not lead elsewhere."""
    is_ref = locked.startswith("refs/") and ".." not in locked
    return _quote(locked) == name and (is_ref or locked in _OTHERS)


def _break_dead(git_dir: str, name: str) -> bool:
    """Break the lock of *name* if a killed uwf process left it; return whether there was one.

    A ref's dead lock is broken when the ref is next locked. packed-refs may not be locked again
    for a long time, and until then no git could pack or delete a ref.
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
    """Remove what a killed uwf process left; the caller holds the guard, so its taker is dead."""
    try:
        left = os.stat(marker)
    except FileNotFoundError:
        return
    _remove_if_same(lock, left)
    remove_file(marker)


def _remove_if_same(lock: str, taken: os.stat_result) -> None:
    try:
        ours = os.path.samestat(os.stat(lock), taken)
    except FileNotFoundError:
        return
    if ours:
        remove_file(lock)


def _take(marker: str, lock: str) -> os.stat_result:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _link(marker, lock)
        except FileNotFoundError:
            # `git pack-refs` removes empty folders.
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
    """Take the lock on a file system without hard links; a kill then leaves it, as git does."""
    with open(marker, "rb") as file, open(lock, "xb") as copy:
        copy.write(file.read())
        copy.flush()
        os.fsync(copy.fileno())
