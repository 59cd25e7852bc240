"""Thread locks: one engine at a time works on a thread.

Owns: the lock files below `<git dir>/uwf/locks/`, and what they say about their holder.
Knows nothing of: what the holder does. Always true: the ref's compare-and-swap stays the
judge; the lock only spares an agent's run that would be lost, and names who is at work.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uwf_git.errors import Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.time_text import render_time
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.store import Store

_TOLD = ("pid", "host", "since", "role")
_LONGEST_TOLD = 100


class ThreadBusy(Conflict):
    """Another process works on the thread."""

    code = "thread-busy"

    def __init__(self, thread: ThreadId, holder: dict[str, Any]) -> None:
        since = holder.get("since")
        told = {**holder, "since": render_time(since) if isinstance(since, int) else ""}
        who = ", ".join(f"{key} {value}" for key, value in told.items() if value)
        super().__init__(
            f"thread {thread} is busy ({who or 'another process works on it'})",
            hint="try again when it is done",
            thread=thread,
            holder=holder,
        )


class ThreadLock:
    """A held lock, which says what its holder does."""

    __slots__ = ("descriptor", "holder")

    def __init__(self, descriptor: int | None, holder: dict[str, Any]) -> None:
        self.descriptor = descriptor
        self.holder = holder

    def say(self, role: str) -> None:
        """Say which role is being played; for people, and for whoever finds the lock held."""
        self.holder["role"] = role
        self._write()

    def _write(self) -> None:
        if self.descriptor is not None:
            content = json.dumps(self.holder).encode() + b"\n"
            os.pwrite(self.descriptor, content, 0)
            os.ftruncate(self.descriptor, len(content))


@contextmanager
def lock_thread(store: Store, thread: ThreadId, *, since_ms: int) -> Iterator[ThreadLock]:
    """Hold *thread* while working on it.

    Raises:
        ThreadBusy: a living process holds it.
    """
    if not store.is_kept:
        yield ThreadLock(None, {})
        return
    path = store.local_path("locks", thread)
    with hold_lock(path, wait=False) as descriptor:
        if descriptor is None:
            raise ThreadBusy(thread, read_holder(path))
        lock = ThreadLock(descriptor, {"pid": os.getpid(), "host": _host(), "since": since_ms})
        lock.say("")
        try:
            yield lock
        finally:
            os.ftruncate(descriptor, 0)


def forget_lock(store: Store, thread: ThreadId) -> None:
    """Remove the lock file of a thread that has ended; the caller holds it."""
    if store.is_kept:
        # Whoever waits for the old file finds that the name is gone, and looks again.
        try:
            os.unlink(store.local_path("locks", thread))
        except FileNotFoundError:
            return


def read_holder(path: str) -> dict[str, Any]:
    """Read what the holder of the lock at *path* says of itself; {} if it says nothing."""
    try:
        with open(path, "rb") as file:
            holder = json.loads(file.read(10_000))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(holder, dict):
        return {}
    return {name: _told(holder[name]) for name in _TOLD if name in holder}


def _told(value: Any) -> int | str:
    """Give one value of a lock file as it may stand in a message, whoever wrote it."""
    if isinstance(value, int):
        return value
    return "".join(char for char in str(value) if char.isprintable())[:_LONGEST_TOLD]


def _host() -> str:
    return os.uname().nodename
