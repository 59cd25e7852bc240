"""A lock file that says who holds it: flock decides, and the content, JSON, is for people.

An empty file means unlocked: a holder empties its file before it releases the lock. A pid alone
never identifies the holder, since it may belong to another process by now; the time at which the
process began tells them apart.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from uwf_git.debug_log import debug
from uwf_git.model.time_text import render_time
from uwf_git.processes import read_process_start
from uwf_git.store.disk.file_lock import hold_lock, is_held

_PAUSE_S = 0.002
_MOST_BYTES = 10_000
_LONGEST_VALUE = 100
_READ = ("pid", "start", "host", "since", "role", "agent", "signing")
_SHOWN = ("pid", "host", "since", "role", "signing")

Holder = dict[str, Any]
"""What a holder writes about itself: pid, start, host, since (ms since 1970), and more."""


class HeldFile:
    """A lock file that this process holds."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace what the file says."""
        # One write that is as long as the old content: a reader in between never sees half of it.
        size = os.fstat(self.descriptor).st_size
        text = json.dumps(dict(content)).encode().ljust(size - 1) + b"\n"
        os.pwrite(self.descriptor, text, 0)

    def clear(self) -> None:
        """Empty the file."""
        os.ftruncate(self.descriptor, 0)


@contextmanager
def hold_file(
    path: str, content: Mapping[str, Any], *, patience_s: float, busy: Callable[[Holder], Exception]
) -> Iterator[HeldFile]:
    """Hold the lock file at *path*, which says *content* meanwhile (nothing if that is empty).

    A lock whose file names no living holder is waited for, at most *patience_s*: it is probably
    held by ``is_held`` for a moment.

    Raises:
        What *busy* returns for the holder ({} if unknown): another process holds it.
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
    """Return what this process writes into a lock that it holds since *since_ms*."""
    pid = os.getpid()
    return {"pid": pid, "start": _own_start(pid), "host": _host(), "since": since_ms}


@cache
def _own_start(pid: int) -> int | None:
    return read_process_start(pid)


if hasattr(os, "register_at_fork"):
    # A later descendant may have the number of a process that has ended.
    os.register_at_fork(after_in_child=_own_start.cache_clear)


def find_file_holder(path: str) -> Holder | None:
    """Return what the holder of the lock at *path* says; None if it is free.

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
    """Return what the lock at *path* says of its holder, fit to be shown; {} if nothing."""
    content = read_content(path)
    return {name: _shown(content[name]) for name in _READ if content.get(name) is not None}


def read_content(path: str) -> dict[str, Any]:
    """Return the JSON object in the lock file at *path*; {} if it has none."""
    try:
        # Most locks are free: such a file is missing or empty, and need not be opened.
        if os.stat(path).st_size == 0:
            return {}
        with open(path, "rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def describe_holder(holder: Mapping[str, Any]) -> str:
    """Return *holder* in words for a message; "" if it says nothing."""
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
