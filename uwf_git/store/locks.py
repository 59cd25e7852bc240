"""Locks: a file that git's own lock guards, and a file that the kernel locks."""

import errno
import hashlib
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, StoreFailed
from uwf_git.model.text import render_time
from uwf_git.store.durable import add_files, list_names, make_folder, read_local, remove_file
from uwf_git.surroundings import read_process_start

# Hold a lock file with flock(2): the kernel frees it when the process dies.
#
# A forked child closes its copies of held locks, so it cannot keep a lock alive. Without flock
# (Windows) every module can be imported, and the first lock raises LockingUnsupported.

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows)
    # mypy: None in place of the module says that there is no flock.
    fcntl = None  # type: ignore[assignment]

_OPEN: set[int] = set()
"""The descriptors of the lock files that this process has open."""


class LockingUnsupported(StoreFailed):
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
    """Hold the lock file at *path*; *make* creates it, otherwise FileNotFoundError.

    Yield the open file, or None if the lock is held elsewhere and *wait* is false.
    """
    descriptor = take_lock(path, wait=wait, make=make)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            free_lock(descriptor)


def is_held(path: str) -> bool:
    """Check whether the lock file at *path* is held, by sharing it for a moment if it is not."""
    descriptor = take_lock(path, wait=False, is_shared=True)
    if descriptor is not None:
        free_lock(descriptor)
    return descriptor is None


def take_lock(path: str, *, wait: bool, make: bool = True, is_shared: bool = False) -> int | None:
    """Hold the lock file at *path* until `free_lock`; *wait* and *make* are as in `hold_lock`.

    Those who share it do not see each other.
    """
    if fcntl is None:
        raise LockingUnsupported(path)
    while True:
        descriptor = _open(path, make=make)
        try:
            kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
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
    """Release what `take_lock` returned; never call this in a forked child, which has no lock."""
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
    # A later descendant may have the number of a process that has ended.
    _own_start.cache_clear()


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


# A lock file that says who holds it: flock decides, and the content, JSON, is for people.
#
# An empty file means unlocked: a holder empties its file before it releases the lock. A pid alone
# never identifies the holder, since it may belong to another process by now; the time at which
# the process began tells them apart.

_PAUSE_S = 0.002
_MOST_BYTES = 10_000
_LONGEST_VALUE = 100
_READ = ("pid", "start", "host", "since", "role", "agent", "signing")
_SHOWN = ("pid", "host", "since", "role", "signing")

Holder = dict[str, Any]
"""What a holder writes about itself: pid, start, host, since (ms since 1970), and more."""


class HeldFile(NamedTuple):
    descriptor: int

    def write(self, content: Mapping[str, Any]) -> None:
        # One write that is as long as the old content: a reader in between never sees half of it.
        size = os.fstat(self.descriptor).st_size
        text = json.dumps(dict(content)).encode().ljust(size - 1) + b"\n"
        os.pwrite(self.descriptor, text, 0)

    def clear(self) -> None:
        os.ftruncate(self.descriptor, 0)


@contextmanager
def hold_file(
    path: str, content: Mapping[str, Any], *, patience_s: float, busy: Callable[[Holder], Exception]
) -> Iterator[HeldFile]:
    """Hold the lock file at *path*, which says *content* meanwhile (nothing if that is empty).

    A lock whose file names no living holder is waited for, at most *patience_s*: it is probably
    held by ``is_held`` for a moment. If another process holds the lock, raise what *busy* returns
    for the holder ({} if unknown).
    """
    with ExitStack() as stack:
        held = HeldFile(_take(stack, path, patience_s, busy))
        # A killed holder may have left its content.
        if content:
            held.write(content)
        else:
            held.clear()
        debug("9D81TK6N", "lock taken", path=path)
        try:
            yield held
        finally:
            held.clear()
            debug("JZCNA15X", "lock released", path=path)


def _take(
    stack: ExitStack, path: str, patience_s: float, busy: Callable[[Holder], Exception]
) -> int:
    deadline = time.monotonic() + patience_s
    while True:
        descriptor = stack.enter_context(hold_lock(path, wait=False))
        if descriptor is not None:
            return descriptor
        holder = read_holder(path)
        is_stale = not holder or _is_alive(holder) is False
        if not is_stale or time.monotonic() >= deadline:
            debug("BK0CW4YR", "lock is held", path=path, holder=holder, stale=is_stale)
            raise busy({} if is_stale else holder)
        time.sleep(_PAUSE_S)


def this_process(since_ms: int) -> Holder:
    pid = os.getpid()
    return {"pid": pid, "start": _own_start(pid), "host": _host(), "since": since_ms}


@cache
def _own_start(pid: int) -> int | None:
    return read_process_start(pid)


def find_file_holder(path: str) -> Holder | None:
    """Return what the holder of the lock at *path* says; None if the lock is free.

    This creates no file, and takes the lock only if the holder may be on another machine.
    """
    holder = read_holder(path)
    if not holder:
        return None
    is_alive = _is_alive(holder)
    if is_alive is None:
        is_alive = is_held(path)
    return holder if is_alive else None


def read_holder(path: str) -> Holder:
    content = read_content(path)
    return {name: _shown(content[name]) for name in _READ if content.get(name) is not None}


def read_content(path: str) -> dict[str, Any]:
    with suppress(OSError):
        # Most locks are free: such a file is missing or empty, and need not be opened.
        if os.stat(path).st_size:
            return parse_object(read_local(path)[:_MOST_BYTES])
    return {}


def parse_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object that *text* is; an empty one for any other text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def describe_holder(holder: Mapping[str, Any]) -> str:
    since = holder.get("since")
    shown = {**holder, "since": render_time(since) if isinstance(since, int) else ""}
    return ", ".join(f"{key} {shown[key]}" for key in _SHOWN if shown.get(key))


def _shown(value: Any) -> int | str:
    """Return a value of a lock file, which anybody may have written, fit for a message."""
    if isinstance(value, int):
        return value
    return "".join(char for char in str(value) if char.isprintable())[:_LONGEST_VALUE]


def _is_alive(holder: Holder) -> bool | None:
    """Check whether the process that wrote *holder* still runs; None if that is unknown."""
    pid, start = holder.get("pid"), holder.get("start")
    if holder.get("host") != _host() or not isinstance(pid, int) or start is None:
        return None
    return bool(read_process_start(pid) == start)


def _host() -> str:
    return os.uname().nodename


# Hold git's `<file>.lock`, and break one that a killed uwf process left.
#
# Each lock is a hard link to a marker of the same file below uwf/ref-locks/, and its holder also
# holds a guard (a flock). A lock is broken only if it is that hard link and the guard is free. No
# deadlock: guards are taken in one order, and the guard of packed-refs, which is taken while refs
# are held, is shared with no ref and comes last.

PACKED_REFS = "packed-refs"

# The other files that git and uwf lock in this way.
_OTHERS = {PACKED_REFS, "config"}
_GUARD = "guard-"
_LONGEST_NAME = 255
_GUARDS = 64
_PATIENCE_S = 5.0
_LOCKFILE_PAUSE_S = 0.01
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def find_held_lock(told: str) -> str:
    """Return the lock file that git could not take, by what it has *told*; "" if there is none."""
    found = re.search(r"Unable to create '(.+\.lock)': File exists", told)
    return "" if found is None else found[1]


class RefLocked(Conflict):
    code = "ref-locked"

    def __init__(self, path: str, *, remote: str = "") -> None:
        at = f" at {remote}" if remote else ""
        super().__init__(
            f"{path} is held by another git process{at}",
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
    try:
        add_files([(marker, content)], temporary_in=markers(git_dir), durable=durable)
        taken = _take_lockfile(marker, lock)
    except BaseException:
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
    return (os.path.join(git_dir, name + ".lock"), os.path.join(markers(git_dir), _quote(name)))


def _guard(name: str) -> str:
    # Its own guard: it is taken while the guard of a ref is held, which must not be the same.
    if name == PACKED_REFS:
        return f"{_GUARD}packed-refs"
    return f"{_GUARD}{zlib.crc32(name.encode(errors='surrogateescape')) % _GUARDS:02}"


def break_dead_locks(git_dir: str) -> int:
    """Break every lock that a killed uwf process left; return how many markers there were.

    Locking a file breaks its dead lock too, but some files are never locked again. A marker whose
    name is a hash does not tell its file, and waits for that.
    """
    names = sorted(list_names(markers(git_dir)))
    locked = {name: os.fsdecode(unquote_to_bytes(os.fsencode(name))) for name in names}
    return sum(
        _break_dead(git_dir, each) for name, each in locked.items() if _is_marker(name, each)
    )


def _quote(name: str) -> str:
    """Return *name* as a file name: all special characters quoted; if that is too long, a hash."""
    quoted = quote(os.fsencode(name), safe="")
    is_fit = len(quoted) <= _LONGEST_NAME
    return quoted if is_fit else hashlib.sha256(quoted.encode()).hexdigest()


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
    with suppress(FileNotFoundError):
        _remove_if_same(lock, os.stat(marker))
        os.unlink(marker)


def _remove_if_same(lock: str, taken: os.stat_result) -> None:
    with suppress(FileNotFoundError):
        if os.path.samestat(os.stat(lock), taken):
            os.unlink(lock)


def _take_lockfile(marker: str, lock: str) -> os.stat_result:
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
            time.sleep(_LOCKFILE_PAUSE_S)
        else:
            return os.stat(lock)


def _link(marker: str, lock: str) -> None:
    try:
        os.link(marker, lock)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # A file system without hard links: a kill then leaves the lock, as git does.
        with open(marker, "rb") as file, open(lock, "xb") as copy:
            copy.write(file.read())
            copy.flush()
            os.fsync(copy.fileno())
