"""The gc lock: one gc at a time packs a store.

Owns: our own lock file, and reading and clearing git's `gc.pid`, by which a gc that a person
runs is known.
Knows nothing of: packing. Always true: a lock whose process is dead, though its number may live
on in another process, keeps nobody from anything; what may be alive is never touched.
Source: git's builtin/gc.c, `lock_repo_for_gc`.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from uwf_git.errors import Conflict
from uwf_git.model.time_text import render_time
from uwf_git.store.durable import remove
from uwf_git.store.file_lock import hold_lock, is_held
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import read_holder

_GIT_LOCK = "gc.pid"
_HOLDER = re.compile(rb"([0-9]{1,10}) (\S{1,256})\n?")

# git believes a gc of another machine, of which nobody can tell whether it lives, for so long.
_BELIEVED_S = 12 * 3600
# git has the lock of gc.pid for a single write. Were one that takes longer still alive, two gcs
# would run side by side, which git allows (`git gc --force`).
_PATIENCE_S = 5.0
_PAUSE_S = 0.05
_MOST_TRIES = 10
# Clocks of files and of processes are not the same one.
_CLOCK_S = 2.0

# proc(5): dead, and waiting for a parent that does not care.
_DEAD = "ZXx"


class GcRuns(Conflict):
    """Another gc is at work on the store."""

    code = "gc-runs"

    def __init__(self, holder: dict[str, Any]) -> None:
        since = holder.get("since")
        told = {**holder, "since": render_time(since) if isinstance(since, int) else ""}
        who = ", ".join(f"{key} {value}" for key, value in told.items() if value)
        super().__init__(
            f"another gc is at work on this store ({who or 'nobody knows whose'})",
            hint="there is nothing to do: it does what this one would have done",
            holder=holder,
        )


@contextmanager
def hold_gc_lock(store: Store) -> Iterator[None]:
    """Hold the store's gc lock, while no gc of git's is at work either.

    Raises:
        GcRuns: another one is.
    """
    with ExitStack() as stack:
        descriptor = _take(stack, store.local_path("locks", "gc"))
        _write_holder(descriptor)
        stack.callback(os.ftruncate, descriptor, 0)
        check_git_lock(store)
        yield


def _take(stack: ExitStack, path: str) -> int:
    for _try in range(_MOST_TRIES):
        descriptor = stack.enter_context(hold_lock(path, wait=False))
        if descriptor is not None:
            return descriptor
        holder = read_holder(path)
        if holder:
            raise GcRuns(holder)
        # Perhaps it is only being asked whether there is one.
        time.sleep(_PAUSE_S)
    raise GcRuns({})


def is_gc_running(store: Store) -> bool:
    """Tell whether a gc of ours is at work."""
    return is_held(store.local_path("locks", "gc"))


def check_git_lock(store: Store) -> None:
    """Make sure that no gc of git's is at work, and clear away what a killed one has left.

    Raises:
        GcRuns: one is.
    """
    path = os.path.join(store.path, _GIT_LOCK)
    _clear_lock_of_lock(path + ".lock")
    found = _read(path)
    if found is None:
        return
    content, left = found
    match = _HOLDER.fullmatch(content)
    if match is None:
        # git cannot read it either, and takes it.
        return
    pid, host = int(match[1]), match[2].decode(errors="replace")
    if may_live(pid, host, left):
        raise GcRuns({"pid": pid, "host": host, "since": int(left.st_mtime * 1000)})
    if _is_same(path, left):
        remove(path)


def _write_holder(descriptor: int) -> None:
    holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": time.time_ns() // 1_000_000}
    content = json.dumps(holder).encode() + b"\n"
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))


def _clear_lock_of_lock(path: str) -> None:
    """Remove `gc.pid.lock` if its git is dead: it would keep every later gc from beginning."""
    deadline = time.monotonic() + _PATIENCE_S
    first = found = _read(path)
    while first is not None and found is not None and _same(first[1], found[1]):
        content, left = found
        match = _HOLDER.fullmatch(content)
        is_dead = match and not may_live(int(match[1]), match[2].decode(errors="replace"), left)
        if is_dead or time.monotonic() > deadline:
            remove(path)
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
    found = _look_at_process(pid)
    if found is None:
        return True
    state, began_s = found
    # One that began after the file was written only has the number of the one that wrote it.
    return state not in _DEAD and began_s < left.st_mtime + _CLOCK_S


def _look_at_process(pid: int) -> tuple[str, float] | None:
    """Give the state of a process and when it began, in seconds since 1970; None without /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the name in parentheses, which may hold anything.
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/stat", "rb") as file:
            booted = next(line for line in file if line.startswith(b"btime "))
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return fields[0].decode(), int(booted.split()[1]) + began_s
    except (OSError, ValueError, IndexError, StopIteration):
        return None


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
