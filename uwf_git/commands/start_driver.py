"""Driving in the background: a process of its own drives a thread when its caller has gone.

Owns: what is found out before it is started, and when it counts as started.
Knows nothing of: the words that make it drive (cli).
Always true: when `start_driver` returns, the driver holds the right to drive, or is done, or has
lived for a minute and will come to it; what keeps it from that is told here.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from uwf_git.agents.detach import Detached, DetachRequest, start_detached
from uwf_git.commands.caller import Caller
from uwf_git.commands.drive_thread import check_until
from uwf_git.commands.thread_errors import ThreadNotReady, is_steppable, read_active
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, BadUsage, Conflict, Refused, StoreDamaged
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, find_driver, find_holder
from uwf_git.store.thread_log import log_path

_TICK_S = 0.02

# A machine that starts hundreds at once takes its time; the driver lives, and will come to it.
_PATIENCE_S = 60.0

# How long it is looked at when it has begun to drive: an agent begins at once, as a rule.
_MOST_LOOKS = 25

_TAIL_BYTES = 8192
_ERROR, _HINT = "error: ", "hint: "

# What a driver says that has driven: it is done, or its agent has failed, which the thread tells.
_HAS_DRIVEN = (0, AgentFailed.exit_status)
_KNOWN = (Refused.exit_status, BadUsage.exit_status, Conflict.exit_status, StoreDamaged.exit_status)


class DriverEnded(Refused):
    """The driver ended before it could drive."""

    code = "driver-ended"

    def __init__(self, thread: ThreadId, status: int, log: str, *, begun: int) -> None:
        said, hint = _read_last_words(log, begun=begun)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        super().__init__(
            f"the driver of thread {thread} ended at once ({how}): {said or 'it said nothing'}",
            hint=hint or f"all that it said is in {log}",
            thread=thread,
            status=status,
            log=log,
        )
        if status in _KNOWN:
            self.exit_status = status  # type: ignore[misc]  # as the driver's own error had it


class Driver(NamedTuple):
    """A driver in the background."""

    workflow: NodeHash
    thread: ThreadId
    pid: int
    log: str


class DriverRequest(NamedTuple):
    """What is asked of a driver in the background."""

    thread: str
    """An id, or a beginning that no other thread has."""

    argv: Callable[[ThreadId], Sequence[str]]
    """The command that drives a thread."""

    until: str | None = None
    wait: bool = False
    sleep: Callable[[float], None] = time.sleep


def start_driver(store: Store, caller: Caller, request: DriverRequest) -> Driver:
    """Start a process that drives a thread, and return when it has begun to.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none to drive.
        ThreadBusy: somebody drives it already, or takes a step of it.
        ThreadNotReady, NoSuchRole: it could not take one step, or would not know where to stop.
        NotDetached, DriverEnded: there is no driver.
    """
    head, snapshot = read_active(store, request.thread)
    _check_free(store, head.thread)
    _check_ready(snapshot, now_ms=caller.now_ms(), wait=request.wait)
    check_until(snapshot, request.until)
    log = log_path(store, head.thread)
    begun = os.path.getsize(log) if os.path.exists(log) else 0
    environment = {**caller.environ, "UWF_REPO": store.path}
    child = start_detached(DetachRequest(request.argv(head.thread), environment, caller.cwd, log))
    debug("82SB2HA3", "driver started", thread=head.thread, driver=child.pid, log=log)
    try:
        status = _wait_until_begun(store, head.thread, child, sleep=request.sleep)
    finally:
        child.let_go()
    if status is not None and status not in _HAS_DRIVEN:
        raise DriverEnded(head.thread, status, log, begun=begun)
    return Driver(snapshot.record.workflow, head.thread, child.pid, log)


def _check_free(store: Store, thread: ThreadId) -> None:
    holder = find_holder(store, thread) or {}
    # Who names no role only looks, or steers: that takes a moment.
    busy = find_driver(store, thread) or (holder if holder.get("role") else None)
    if busy is not None:
        raise ThreadBusy(thread, busy)


def _check_ready(snapshot: Snapshot, *, now_ms: int, wait: bool) -> None:
    present = snapshot.get_present()
    sleeps = wait and present.waiting is not None and present.waiting.until is not None
    if not (sleeps and snapshot.record.status == "waiting") and not is_steppable(
        snapshot, present, now_ms=now_ms
    ):
        raise ThreadNotReady(snapshot)


def _wait_until_begun(
    store: Store, thread: ThreadId, child: Detached, *, sleep: Callable[[float], None]
) -> int | None:
    """Wait until *child* drives; its exit status if it has ended already."""
    begun = 0
    for _ in range(int(_PATIENCE_S / _TICK_S)):
        # In this order: between the two looks it may have driven and ended.
        status = child.find_status()
        if status is not None:
            return status
        driver = find_driver(store, thread)
        if driver is not None and driver.get("pid") == child.pid:
            begun += 1
            # What would keep it from a step is found before an agent begins.
            if driver.get("role") or begun > _MOST_LOOKS:
                return None
        sleep(_TICK_S)
    return None


def _read_last_words(log: str, *, begun: int) -> tuple[str, str | None]:
    """Give the last error that is in a log from the byte *begun* on, and its hint."""
    said, hint = "", None
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(begun, end - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return "", None
    for line in lines:
        if line.startswith(_ERROR):
            said, hint = line.removeprefix(_ERROR), None
        elif line.startswith(_HINT):
            hint = line.removeprefix(_HINT)
    return said, hint
