"""Hold the gc lock of a store, and read and clear git's own, `gc.pid`.

A lock of a dead process blocks no gc, even if its pid was reused; one that may be of a living
process is never removed.
Source: git's builtin/gc.c, `lock_repo_for_gc`.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from uwf_git.errors import Conflict
from uwf_git.processes import find_boot_time_s, read_process
from uwf_git.store.disk.durable import remove_file
from uwf_git.store.disk.file_lock import Holder, describe_holder, hold_file, is_held, this_process
from uwf_git.store.store import Store

_GIT_LOCK = "gc.pid"
_HOLDER = re.compile(rb"([0-9]{1,10}) (\S{1,256})\n?")

# How long git believes in a gc of another machine, which it cannot check.
_BELIEVED_S = 12 * 3600
# Our own lock without a named holder: ``is_gc_running`` holds it for a moment.
_HELD_PATIENCE_S = 0.5
# git holds gc.pid.lock for a single write. If a slower git is still alive, two gcs run side by
# side, which git allows (`git gc --force`).
_PATIENCE_S = 5.0
_PAUSE_S = 0.05
# File times and process times come from different clocks.
_CLOCK_S = 2.0


class GcRuns(Conflict):
    code = "gc-runs"

    def __init__(self, holder: Holder) -> None:
        who = describe_holder(holder) or "by an unknown process"
        super().__init__(
            f"another gc is at work on this store ({who})",
            hint="nothing to do: that gc does the same work",
            holder=holder,
        )


@contextmanager
def hold_gc_lock(store: Store) -> Iterator[None]:
    holder = this_process(time.time_ns() // 1_000_000)
    path = store.local_path("locks", "gc")
    with hold_file(path, holder, patience_s=_HELD_PATIENCE_S, busy=GcRuns):
        check_git_lock(store)
        yield


def is_gc_running(store: Store) -> bool:
    return is_held(store.local_path("locks", "gc"))


def is_git_gc_running(store: Store) -> bool:
    """Check whether a gc of git may be at work; what a killed one left counts as nothing."""
    found = _read(os.path.join(store.path, _GIT_LOCK))
    match = _HOLDER.fullmatch(found[0]) if found is not None else None
    if found is None or match is None:
        return False
    return may_live(int(match[1]), match[2].decode(errors="replace"), found[1])


def check_git_lock(store: Store) -> None:
    """Check that no gc of git is at work, and remove the lock that a killed one left."""
    path = os.path.join(store.path, _GIT_LOCK)
    _clear_lock_of_lock(path + ".lock")
    found = _read(path)
    if found is None:
        return
    content, left = found
    match = _HOLDER.fullmatch(content)
    if match is None:
        # git cannot read it either, and takes the lock.
        return
    pid, host = int(match[1]), match[2].decode(errors="replace")
    if may_live(pid, host, left):
        raise GcRuns({"pid": pid, "host": host, "since": int(left.st_mtime * 1000)})
    if _is_same(path, left):
        remove_file(path)


def _clear_lock_of_lock(path: str) -> None:
    """Remove `gc.pid.lock` if its git is dead: it would block every later gc."""
    deadline = time.monotonic() + _PATIENCE_S
    first = found = _read(path)
    while first is not None and found is not None and _same(first[1], found[1]):
        content, left = found
        match = _HOLDER.fullmatch(content)
        is_dead = match and not may_live(int(match[1]), match[2].decode(errors="replace"), left)
        if is_dead or time.monotonic() > deadline:
            remove_file(path)
            return
        time.sleep(_PAUSE_S)
        found = _read(path)


def may_live(pid: int, host: str, left: os.stat_result) -> bool:
    """Tell whether the process *pid* of *host*, which wrote a file *left*, may still be alive."""
    if host != os.uname().nodename:
        return time.time() - left.st_mtime < _BELIEVED_S
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    process, boot_s = read_process(pid), find_boot_time_s()
    if process is None or boot_s is None:
        return True
    began_s = boot_s + process.start / os.sysconf("SC_CLK_TCK")
    # A process that began after the file was written has the number of the writer by chance.
    return not process.has_ended and began_s < left.st_mtime + _CLOCK_S


def _read(path: str) -> tuple[bytes, os.stat_result] | None:
    try:
        with open(path, "rb") as file:
            return file.read(1000), os.fstat(file.fileno())
    except FileNotFoundError:
        return None


def _is_same(path: str, left: os.stat_result) -> bool:
    found = _read(path)
    return found is not None and _same(found[1], left)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return os.path.samestat(one, other) and one.st_mtime_ns == other.st_mtime_ns
