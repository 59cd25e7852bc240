"""Start a process of its own that drives a thread.

When `start_driver` returns, the driver holds the drive lock, has ended, or was given a minute.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.agents.group import Detached, DetachRequest, check_cancelled, spawn_detached
from uwf_git.commands.agent_run.runs import is_any_at_work, refuse_inside
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import Family
from uwf_git.commands.inspect.list import count_rows, find_held_by, view_branches
from uwf_git.commands.turn.branches import ThreadNotReady, is_steppable, read_active
from uwf_git.commands.turn.choose_agent import check_roles
from uwf_git.commands.turn.next_move import NextMove, find_next_move
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, BadUsage, Conflict, Refused, StoreDamaged
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.text import without_colours
from uwf_git.model.thread import Status, Waiting
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    find_driver,
    find_holder,
    find_jobs,
    log_path,
)
from uwf_git.store.threads.naming import resolve_thread

_TICK_S = 0.02

# A machine that starts hundreds of drivers at once is slow; the driver lives and will get there.
_PATIENCE_S = 60.0

# How many more checks after the driver took its lock; an agent usually begins at once.
_MOST_LOOKS = 25

_TAIL_BYTES = 8192
_LONGEST_LINE = 300
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
    holder = find_holder(store, head.thread) or {}
    # A holder without a role does not step; it releases the lock in a moment.
    busy = find_driver(store, head.thread) or (holder if holder.get("role") else None)
    if busy is not None:
        raise ThreadBusy(head.thread, busy)
    _check_ready(store, snapshot, now_ms=caller.now_ms(), wait=request.wait)
    check_roles(snapshot, request.until, request.agents)
    log = log_path(store, head.thread)
    environment = {**caller.environ, "UWF_REPO": store.path}
    child = spawn_detached(DetachRequest(request.argv(head.thread), environment, caller.cwd, log))
    debug("82SB2HA3", "driver started", thread=head.thread, driver=child.pid, log=log)
    try:
        status = _wait_until_begun(store, head.thread, child, sleep=request.sleep)
    finally:
        child.let_go()
    if status is not None and status not in _HAS_DRIVEN:
        raise _driver_ended(head.thread, status, log, begun=child.begun)
    return Driver(snapshot.record.workflow, head.thread, child.pid, log)


def start_thread_driver(
    store: Store,
    caller: Caller,
    thread: ThreadId,
    *,
    agent: str | None,
    until: str | None = None,
    max_steps: int | None = None,
    wait: bool = False,
) -> Driver:
    """Start a process that drives *thread* as `uwf thread run` with these options does.

    As many branches are at work at once as in the last drive of *thread* here. *agent* plays
    roles that have none: $UWF_AGENT. Raises as ``start_driver``.
    """

    def argv(each: ThreadId) -> Sequence[str]:
        # -P: import nothing from the agents' directory.
        command = [sys.executable, "-P", "-m", "uwf_git", "thread", "run", each]
        return [*command, "--timestamps", "--format=text", *words]

    named = {"until": until, "max-steps": max_steps, "jobs": find_jobs(store, thread)}
    words = [f"--{name}={value}" for name, value in named.items() if value is not None]
    words += ["--wait"] if wait else []
    environ = {**caller.environ, **({} if agent is None else {"UWF_AGENT": agent})}
    request = DriverRequest(thread, argv, until, wait)
    return start_driver(store, caller._replace(environ=environ), request)


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
    """Return the last error, else the last line, in a log from byte *begun* on, and its hint."""
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(begun, end - _TAIL_BYTES))
            lines = without_colours(file.read().decode(errors="replace")).splitlines()
    except OSError:
        return "", None
    last = (line[:_LONGEST_LINE] for line in reversed(lines) if line.strip())
    said, hint = next((line for line in last if not line.startswith(_HINT)), ""), None
    for line in lines:
        if line.startswith(_ERROR):
            said, hint = line.removeprefix(_ERROR), None
        elif line.startswith(_HINT):
            hint = line.removeprefix(_HINT)
    return said, hint


# `uwf thread wait`: return when no process is at work on a thread any more.
#
# A look takes no lock, creates no file, and reads no object unless the thread is at rest, or
# another one is at work that may be a branch of it.

_FIRST_TICK_S = 0.05
_LONGEST_PAUSE_S = 0.5
_GROWTH = 1.5


class StillAtWork(Conflict):
    """The timeout of `uwf thread wait` is over."""

    code = "still-at-work"

    def __init__(self, threads: Sequence[ThreadId], timeout_s: float) -> None:
        is_one = len(threads) == 1
        who = f"thread {threads[0]} is" if is_one else f"{len(threads)} threads are"
        super().__init__(
            f"{who} still at work after {timeout_s:g} s",
            hint=f"see what runs with `uwf ps`, and its output with `uwf thread logs {threads[0]}`",
            threads=list(threads),
        )


class AtRest(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    waiting: Waiting | None
    branches: Mapping[str, int]
    """How many branches have which status, of a thread that has split."""

    held: Sequence[dict[str, Any]]
    """What keeps a ready or split thread from going on: a limit, a branch, an undecided step."""


class WaitRequest(NamedTuple):
    threads: Sequence[str]

    timeout_s: float | None = None
    """None: no limit."""

    environ: Mapping[str, str] = {}
    """Who waits: an agent's environment names its thread."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic


def wait_for_threads(
    store: Store, request: WaitRequest, *, on_rest: Callable[[AtRest], None]
) -> None:
    """Wait until no process is at work on any of the threads; pass each to *on_rest* as it rests.

    A driver is at work also while it sleeps until a limit ends, a paused thread while its last
    step runs, and a thread whose engine was killed while its agent runs. A process at work on a
    branch is at work on the threads around it.
    """
    threads = list(dict.fromkeys(resolve_thread(store, text) for text in request.threads))
    for thread in threads:
        refuse_inside(store, thread, request.environ)
    begun_s = request.monotonic()
    tick_s = _FIRST_TICK_S
    while True:
        threads = [thread for thread in threads if not _tell_rest(store, thread, on_rest)]
        if not threads:
            return
        left_s = _LONGEST_PAUSE_S
        if request.timeout_s is not None:
            left_s = request.timeout_s - (request.monotonic() - begun_s)
            if left_s <= 0:
                raise StillAtWork(threads, request.timeout_s)
        request.sleep(min(tick_s, left_s))
        check_cancelled()
        tick_s = min(_LONGEST_PAUSE_S, tick_s * _GROWTH)


def _tell_rest(store: Store, thread: ThreadId, on_rest: Callable[[AtRest], None]) -> bool:
    # The locks first: once they are free, the record read below is final.
    is_busy = is_any_at_work(store, Family(store, thread))
    head = get_head(store, thread)
    if is_busy and not head.archived:
        return False
    snapshot = read_snapshot(store, head.commit)
    record = snapshot.record
    waiting = snapshot.get_present().waiting if record.status == "waiting" else None
    branches = view_branches(store, snapshot) if record.status == "split" else []
    counts = count_rows(branches)
    move = find_next_move(snapshot) if record.status == "ready" else NextMove()
    is_held = branches or move.may_be_held(snapshot)
    held = find_held_by(store, snapshot, branches, move.problem) if is_held else []
    on_rest(AtRest(record.workflow, thread, record.node, record.status, waiting, counts, held))
    return True
