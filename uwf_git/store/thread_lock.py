"""Thread locks: one engine at a time works on a thread.

Owns: the lock files below `<git dir>/uwf/locks/`, and what they say about their holder:

    <id>        an engine takes a step
    <id>.drive  somebody drives the thread, step after step; held in between as well
    <id>.stop   somebody is ending the thread: no step begins

Knows nothing of: what the holder does. Always true: the ref's compare-and-swap stays the
judge; the lock only spares an agent's run that would be lost, and names who is at work. Looking
who holds one takes none, as long as the holder is of this machine: a number alone never decides,
since it may be another process's by now; the time at which the process began tells them apart.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.time_text import render_time
from uwf_git.store.file_lock import hold_lock, is_held
from uwf_git.store.process_start import read_process_start
from uwf_git.store.store import Store

_TOLD = ("pid", "start", "host", "since", "role", "agent")
_SHOWN = ("pid", "host", "since", "role")
_LONGEST_TOLD = 100

_PATIENCE_S = 0.25
_PAUSE_S = 0.002

_DRIVE, _STOP = ".drive", ".stop"


class ThreadBusy(Conflict):
    """Another process works on the thread."""

    code = "thread-busy"

    def __init__(self, thread: ThreadId, holder: dict[str, Any], *, hint: str = "") -> None:
        since = holder.get("since")
        told = {**holder, "since": render_time(since) if isinstance(since, int) else ""}
        who = ", ".join(f"{key} {told[key]}" for key in _SHOWN if told.get(key))
        super().__init__(
            f"thread {thread} is busy ({who or 'another process works on it'})",
            hint=hint
            or f"try again when it is done: `uwf thread wait {thread}`; "
            f"`uwf thread pause {thread}` stops it after this step, --now at once",
            thread=thread,
            holder=holder,
        )


class ThreadLock:
    """A held lock, which says what its holder does."""

    __slots__ = ("descriptor", "holder")

    def __init__(self, descriptor: int | None, holder: dict[str, Any]) -> None:
        self.descriptor = descriptor
        self.holder = holder

    def say(self, role: str, agent: str = "") -> None:
        """Say which role is being played, and by whom; for people who find the lock held."""
        self.holder |= {"role": role, "agent": agent}
        if self.descriptor is not None:
            # All of what stood there is written over at once: cut off in a second go, half of it
            # would say nothing to whoever looks in between.
            size = os.fstat(self.descriptor).st_size
            content = json.dumps(self.holder).encode().ljust(size - 1) + b"\n"
            os.pwrite(self.descriptor, content, 0)


@contextmanager
def lock_thread(store: Store, thread: ThreadId, *, since_ms: int) -> Iterator[ThreadLock]:
    """Hold *thread* while working on it.

    Raises:
        ThreadBusy: a living process holds it.
    """
    with _lock(store, thread, "", since_ms) as lock:
        yield lock


@contextmanager
def lock_drive(store: Store, thread: ThreadId, *, since_ms: int) -> Iterator[ThreadLock]:
    """Hold the right to drive *thread*, step after step.

    Raises:
        ThreadBusy: a living process drives it.
    """
    with _lock(store, thread, _DRIVE, since_ms) as lock:
        yield lock


@contextmanager
def lock_stop(store: Store, thread: ThreadId, *, since_ms: int) -> Iterator[None]:
    """Let no step of *thread* begin meanwhile.

    Raises:
        ThreadBusy: another process does the same.
    """
    with _lock(store, thread, _STOP, since_ms):
        yield


@contextmanager
def lock_briefly(store: Store, thread: ThreadId) -> Iterator[None]:
    """Hold *thread* for a moment, saying nothing: whoever comes to work on it meanwhile waits.

    Raises:
        ThreadBusy: a living process holds it.
    """
    if not store.is_kept:
        yield
        return
    with ExitStack() as stack:
        descriptor = _take(stack, thread, _path(store, thread, ""))
        # What one that was killed said of itself is no more true of us.
        os.ftruncate(descriptor, 0)
        yield


def find_holder(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    """Give what the process that takes a step of *thread* says of itself; None if there is none."""
    return _find_holder(store, thread, "")


def find_driver(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    """Give what the process that drives *thread* says of itself; None if there is none."""
    return _find_holder(store, thread, _DRIVE)


def is_being_stopped(store: Store, thread: ThreadId) -> bool:
    """Tell whether somebody is ending *thread*."""
    return _find_holder(store, thread, _STOP) is not None


def check_not_stopped(store: Store, thread: ThreadId) -> None:
    """Make sure that nobody is ending *thread*.

    Raises:
        ThreadBusy: somebody is.
    """
    if is_being_stopped(store, thread):
        raise ThreadBusy(thread, {}, hint="somebody is ending it; `uwf thread show` tells how")


@contextmanager
def _lock(store: Store, thread: ThreadId, suffix: str, since_ms: int) -> Iterator[ThreadLock]:
    if not store.is_kept:
        yield ThreadLock(None, {})
        return
    with ExitStack() as stack:
        descriptor = _take(stack, thread, _path(store, thread, suffix))
        pid = os.getpid()
        told = {"pid": pid, "start": read_process_start(pid), "host": _host(), "since": since_ms}
        debug("9D81TK6N", "lock taken", thread=thread, lock=suffix)
        lock = ThreadLock(descriptor, told)
        lock.say("")
        try:
            yield lock
        finally:
            # Who finds it empty knows without asking for the lock that it is free.
            os.ftruncate(descriptor, 0)
            debug("JZCNA15X", "lock let go", thread=thread, lock=suffix)


def _take(stack: ExitStack, thread: ThreadId, path: str) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        descriptor = stack.enter_context(hold_lock(path, wait=False))
        if descriptor is not None:
            return descriptor
        holder = read_holder(path)
        is_stale = not holder or _lives(holder) is False
        # Who only looks holds it for a moment, and says nothing of itself.
        if not is_stale or time.monotonic() >= deadline:
            debug("BK0CW4YR", "lock is held", thread=thread, holder=holder, stale=is_stale)
            raise ThreadBusy(thread, {} if is_stale else holder)
        time.sleep(_PAUSE_S)


def _find_holder(store: Store, thread: ThreadId, suffix: str) -> dict[str, Any] | None:
    """Give what the holder of a lock says; None if it is free. Looking makes no files."""
    if not store.is_kept:
        return None
    path = _path(store, thread, suffix)
    holder = read_holder(path)
    if not holder:
        return None
    lives = _lives(holder)
    if lives is None:
        lives = is_held(path)
    return holder if lives else None


def _lives(holder: dict[str, Any]) -> bool | None:
    """Tell whether the process that wrote this is there still; None if that cannot be told.

    A process empties its lock before it lets go, so that one which lives holds it.
    """
    pid, start = holder.get("pid"), holder.get("start")
    if holder.get("host") != _host() or not isinstance(pid, int) or start is None:
        return None
    return bool(read_process_start(pid) == start)


def _path(store: Store, thread: ThreadId, suffix: str) -> str:
    return store.local_path("locks", thread) + suffix


def forget_lock(store: Store, thread: ThreadId) -> None:
    """Remove the lock files of a thread that has ended; the caller holds the first of them."""
    if store.is_kept:
        # Whoever waits for the old file finds that the name is gone, and looks again.
        # The first of them last: as long as it is there, what a kill leaves is found and swept.
        for suffix in (_DRIVE, _STOP, ""):
            with suppress(FileNotFoundError):
                os.unlink(_path(store, thread, suffix))


def read_holder(path: str) -> dict[str, Any]:
    """Read what the holder of the lock at *path* says of itself; {} if it says nothing."""
    try:
        with open(path, "rb") as file:
            holder = json.loads(file.read(10_000))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(holder, dict):
        return {}
    return {name: _told(holder[name]) for name in _TOLD if holder.get(name) is not None}


def _told(value: Any) -> int | str:
    """Give one value of a lock file as it may stand in a message, whoever wrote it."""
    if isinstance(value, int):
        return value
    return "".join(char for char in str(value) if char.isprintable())[:_LONGEST_TOLD]


def _host() -> str:
    return os.uname().nodename
