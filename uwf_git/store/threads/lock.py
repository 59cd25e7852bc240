"""Hold a thread, so that one engine at a time works on it; ask for its end."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.processes import read_process
from uwf_git.store.disk.durable import read_if_there, remove_file, replace_file
from uwf_git.store.disk.locks import (
    HeldFile,
    Holder,
    describe_holder,
    find_file_holder,
    hold_file,
    this_process,
)
from uwf_git.store.objects.commit import check_clock
from uwf_git.store.store import Store

# A kill that is under way: why the thread is to end, in `<git dir>/uwf/locks/<id>.kill`.
#
# Written under ``lock_stop`` before an agent is stopped. The process that kills may be a child of
# that agent and end with it; the request stays, and whoever finds the lock free ends the thread.

_KILL, _JOBS = ".kill", ".jobs"


def write_kill_request(store: Store, thread: ThreadId, reason: str) -> None:
    """Record that *thread* is to end; *reason* may be empty."""
    # A power loss ends the agent too, so this file need not survive one.
    replace_file(_path(store, thread, _KILL), reason.encode(errors="replace"), durable=False)


def find_kill_request(store: Store, thread: ThreadId) -> str | None:
    """Return why *thread* is to end; None if nobody ends it."""
    path = _path(store, thread, _KILL)
    # Each step asks twice, and next to none finds a request.
    if not os.path.lexists(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def forget_kill_request(store: Store, thread: ThreadId) -> None:
    remove_file(_path(store, thread, _KILL))


def keep_jobs(store: Store, thread: ThreadId, jobs: int) -> None:
    """Remember for a drive that goes on how many branches this drive works on at once."""
    if find_jobs(store, thread) != jobs:
        replace_file(_path(store, thread, _JOBS), str(jobs).encode(), durable=False)


def find_jobs(store: Store, thread: ThreadId) -> int | None:
    """Return the ``keep_jobs`` of the last drive of *thread* here; None before the first."""
    with suppress(ValueError):
        return int(read_if_there(_path(store, thread, _JOBS)))
    return None


# Hold a thread, so that one engine at a time works on it.
#
# The lock files of a thread below `<git dir>/uwf/locks/`:
#
#     <id>        held by the engine that takes a step
#     <id>.drive  held by the process that drives the thread, also between steps
#     <id>.stop   held by the process that ends the thread: no step begins
#     <id>.kill   no lock: why the thread is to end (above)
#     <id>.jobs   no lock: how many branches the last drive worked on at once
#
# Correctness is left to the compare-and-swap of the ref; the lock avoids agent runs whose result
# would be lost, and names who is at work.

_PATIENCE_S = 0.25

_STEP, _DRIVE, _STOP = "", ".drive", ".stop"


class ThreadBusy(Conflict):
    code = "thread-busy"

    def __init__(self, thread: ThreadId, holder: Holder, *, hint: str = "") -> None:
        who = describe_holder(holder) or "another process works on it"
        super().__init__(
            f"thread {thread} is busy ({who})",
            hint=_continue_hint(holder)
            or hint
            or f"try again when it is done: `uwf thread wait {thread}`; "
            f"`uwf thread pause {thread}` stops it after this step, --now at once",
            thread=thread,
            holder=holder,
        )


def is_stopped(holder: Holder) -> bool:
    """Return whether the *holder* is a stopped process (SIGSTOP, Ctrl-Z), which ends nothing."""
    process = read_process(holder["pid"]) if isinstance(holder.get("pid"), int) else None
    return process is not None and process.is_stopped and process.start == holder.get("start")


def _continue_hint(holder: Holder) -> str:
    if not is_stopped(holder):
        return ""
    pid = holder["pid"]
    return (
        f"process {pid} is stopped (SIGSTOP, Ctrl-Z): `kill -CONT {pid}` lets it "
        f"go on, and `kill -KILL {pid}` ends it"
    )


class ThreadLock(NamedTuple):
    file: HeldFile
    holder: Holder
    path: str

    def say(self, role: str, agent: str = "") -> None:
        self.write({"role": role, "agent": agent})

    def write(self, said: Holder) -> None:
        self.holder.update(said)
        self.file.write(self.holder)


_HELD = threading.local()
"""The locks that a thread of Python holds, in its attribute ``locks``."""


@contextmanager
def say_signing(program: str) -> Iterator[None]:
    locks: list[ThreadLock] = list(getattr(_HELD, "locks", ()))
    for lock in locks:
        lock.write({"signing": program})
    try:
        yield
    finally:
        for lock in locks:
            lock.write({"signing": ""})


Locked = AbstractContextManager[ThreadLock]


def lock_thread(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Hold *thread* while working on it; raise ThreadBusy if a living process holds it."""
    check_clock(since_ms)
    return _lock(store, thread, _STEP, since_ms)


def lock_drive(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Hold the right to drive *thread*, step after step."""
    return _lock(store, thread, _DRIVE, since_ms)


def lock_stop(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Let no step of *thread* begin meanwhile."""
    return _lock(store, thread, _STOP, since_ms)


def lock_briefly(store: Store, thread: ThreadId) -> AbstractContextManager[HeldFile]:
    """Hold *thread* for a moment without a named holder, so that others wait for it."""
    return _hold(store, thread, _STEP, {})


@contextmanager
def _lock(store: Store, thread: ThreadId, suffix: str, since_ms: int) -> Iterator[ThreadLock]:
    holder = this_process(since_ms) | {"role": "", "agent": ""}
    with _hold(store, thread, suffix, holder) as file:
        lock = ThreadLock(file, holder, _path(store, thread, suffix))
        held: list[ThreadLock] = _HELD.__dict__.setdefault("locks", [])
        held.append(lock)
        try:
            yield lock
        finally:
            held.remove(lock)


def _hold(
    store: Store, thread: ThreadId, suffix: str, holder: Holder
) -> AbstractContextManager[HeldFile]:
    path = _path(store, thread, suffix)
    return hold_file(path, holder, patience_s=_PATIENCE_S, busy=partial(ThreadBusy, thread))


def find_holder(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    return find_file_holder(_path(store, thread, _STEP))


def is_held_here(store: Store, thread: ThreadId) -> bool:
    """Return whether this thread of Python takes a step of *thread*: its player runs here."""
    path = _path(store, thread, _STEP)
    return any(lock.path == path for lock in getattr(_HELD, "locks", ()))


def find_driver(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    return find_file_holder(_path(store, thread, _DRIVE))


def is_being_stopped(store: Store, thread: ThreadId) -> bool:
    return find_file_holder(_path(store, thread, _STOP)) is not None


def check_not_stopped(store: Store, thread: ThreadId) -> None:
    if is_being_stopped(store, thread):
        raise ThreadBusy(
            thread, {}, hint=f"it is being ended; `uwf thread show {thread}` tells by whom"
        )


def has_lock_file(store: Store, thread: ThreadId) -> bool:
    """Check whether a step of *thread* has left its lock file; it goes when the thread ends."""
    return os.path.lexists(_path(store, thread, _STEP))


def forget_lock(store: Store, thread: ThreadId) -> None:
    """Remove the lock files of a thread that has ended; the caller holds the lock of steps."""
    # A process that waits for a removed file finds the name gone, and opens the path again.
    # The file of steps goes last: gc finds by it what a kill in between leaves.
    forget_kill_request(store, thread)
    for suffix in (_JOBS, _DRIVE, _STOP, _STEP):
        with suppress(FileNotFoundError):
            os.unlink(_path(store, thread, suffix))


def _path(store: Store, thread: ThreadId, suffix: str) -> str:
    return store.local_path("locks", thread) + suffix
