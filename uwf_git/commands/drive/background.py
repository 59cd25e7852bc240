"""Start a process of its own that drives a thread.

When `start_driver` returns, the driver holds the drive lock, has ended, or was given a minute.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from uwf_git.agents.group import Detached, DetachRequest, spawn_detached
from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.active_thread import ThreadNotReady, is_steppable, read_active
from uwf_git.commands.turn.bind_roles import check_roles
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, BadUsage, Conflict, Refused, StoreDamaged
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import log_path
from uwf_git.store.threads.lock import ThreadBusy, find_driver, find_holder, find_jobs
from uwf_git.store.threads.snapshot import Snapshot

_TICK_S = 0.02

# A machine that starts hundreds of drivers at once is slow; the driver lives and will get there.
_PATIENCE_S = 60.0

# How many more checks after the driver took its lock; an agent usually begins at once.
_MOST_LOOKS = 25

_TAIL_BYTES = 8192
_ERROR, _HINT = "error: ", "hint: "

# Exit statuses of a driver that has driven: done, or its agent failed, which the thread records.
_HAS_DRIVEN = (0, AgentFailed.exit_status)
_KNOWN = (Refused.exit_status, BadUsage.exit_status, Conflict.exit_status, StoreDamaged.exit_status)


def _driver_ended(thread: ThreadId, status: int, log: str, *, begun: int) -> Refused:
    said, hint = _read_last_words(log, begun=begun)
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    error = Refused(
        f"the driver of thread {thread} ended at once ({how}): {said or 'it printed nothing'}",
        code="driver-ended",
        hint=hint or f"its output is in {log}",
        thread=thread,
        status=status,
        log=log,
    )
    if status in _KNOWN:
        error.exit_status = status  # type: ignore[misc]  # of the driver's own error
    return error


class Driver(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    pid: int
    log: str


class DriverRequest(NamedTuple):
    thread: str

    argv: Callable[[ThreadId], Sequence[str]]

    until: str | None = None
    wait: bool = False
    agents: Sequence[str] = ()
    """Values of ``--agent``, which *argv* has as well."""

    sleep: Callable[[float], None] = time.sleep


def start_driver(store: Store, caller: Caller, request: DriverRequest) -> Driver:
    head, snapshot = read_active(store, request.thread)
    _check_free(store, head.thread)
    _check_ready(store, snapshot, now_ms=caller.now_ms(), wait=request.wait)
    check_roles(snapshot, request.until, request.agents)
    log = log_path(store, head.thread)
    begun = os.path.getsize(log) if os.path.exists(log) else 0
    environment = {**caller.environ, "UWF_REPO": store.path}
    child = spawn_detached(DetachRequest(request.argv(head.thread), environment, caller.cwd, log))
    debug("82SB2HA3", "driver started", thread=head.thread, driver=child.pid, log=log)
    try:
        status = _wait_until_begun(store, head.thread, child, sleep=request.sleep)
    finally:
        child.let_go()
    if status is not None and status not in _HAS_DRIVEN:
        raise _driver_ended(head.thread, status, log, begun=begun)
    return Driver(snapshot.record.workflow, head.thread, child.pid, log)


def start_thread_driver(
    store: Store,
    caller: Caller,
    thread: ThreadId,
    *,
    agent: str | None,
    words: Sequence[str] = (),
    until: str | None = None,
    wait: bool = False,
) -> Driver:
    """Start a process that drives *thread* as `uwf thread run` with *words* does.

    As many branches are at work at once as in the last drive of *thread* here. *agent* plays
    roles that have none: $UWF_AGENT. Raises as ``start_driver``.
    """

    def argv(each: ThreadId) -> Sequence[str]:
        # -P: import nothing from the agents' directory.
        command = [sys.executable, "-P", "-m", "uwf_git", "thread", "run", each]
        return [*command, "--timestamps", "--format=text", *jobs, *words]

    kept = find_jobs(store, thread)
    jobs = () if kept is None else (f"--jobs={kept}",)
    environ = {**caller.environ, **({} if agent is None else {"UWF_AGENT": agent})}
    request = DriverRequest(thread, argv, until, wait)
    return start_driver(store, caller._replace(environ=environ), request)


def _check_free(store: Store, thread: ThreadId) -> None:
    holder = find_holder(store, thread) or {}
    # A holder without a role does not step; it releases the lock in a moment.
    busy = find_driver(store, thread) or (holder if holder.get("role") else None)
    if busy is not None:
        raise ThreadBusy(thread, busy)


def _check_ready(store: Store, snapshot: Snapshot, *, now_ms: int, wait: bool) -> None:
    if snapshot.record.status == "split":
        # Its branches say whether they can go on.
        return
    present = snapshot.get_present()
    sleeps = wait and present.waiting is not None and present.waiting.until is not None
    if not (sleeps and snapshot.record.status == "waiting") and not is_steppable(
        snapshot, present, now_ms=now_ms, is_driven=True
    ):
        raise ThreadNotReady(store, snapshot)


def _wait_until_begun(
    store: Store, thread: ThreadId, child: Detached, *, sleep: Callable[[float], None]
) -> int | None:
    """Wait until *child* drives; return its exit status if it has ended."""
    begun = 0
    for _ in range(int(_PATIENCE_S / _TICK_S)):
        # In this order: between the two it may have driven and ended.
        status = child.find_status()
        if status is not None:
            return status
        driver = find_driver(store, thread)
        if driver is not None and driver.get("pid") == child.pid:
            begun += 1
            # Errors that prevent a step are found before an agent begins.
            if driver.get("role") or begun > _MOST_LOOKS:
                return None
        sleep(_TICK_S)
    return None


def _read_last_words(log: str, *, begun: int) -> tuple[str, str | None]:
    """Return the last error in a log from byte *begun* on, and its hint."""
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
