"""Running: who is at work on which thread of this store, at this moment.

Owns: putting together what the lock files and the run folders say.
Knows nothing of: commits that nobody works after; only threads with such files are looked at.
Always true: nobody is named who is not there. A process counts by its number and its start, an
agent by the lock that it holds open; so a number that was given away again is nobody's. Looking
takes no lock that a step might want.
"""

import os
from typing import Any, NamedTuple

from uwf_git.agents.spool import PID
from uwf_git.agents.stop_run import find_group
from uwf_git.commands.play_agent import ALIVE, find_player, list_runs
from uwf_git.commands.work_traces import RUNNING, list_traces
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.file_lock import is_held
from uwf_git.store.heads import find_head
from uwf_git.store.process_start import read_process_start
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import find_driver, find_holder


class Running(NamedTuple):
    """A thread on which somebody is at work."""

    thread: ThreadId
    role: str | None
    """Whose turn is being played; None between two steps."""

    agent: str | None
    """Who plays it, in one word."""

    pid: int | None
    """The engine's; None if it is dead and its agent works on, or on another machine."""

    group: int | None
    """The agent's process group; None if there is no agent, or nobody can tell."""

    since: int | None
    """When the step began, or the drive if none is under way; in milliseconds since 1970."""

    is_driven: bool
    """Whether somebody drives the thread, step after step."""


def find_running(store: Store, thread: ThreadId) -> Running | None:
    """Give who is at work on *thread*: a step, a driver between two, or an agent left alone."""
    holder, driver = find_holder(store, thread), find_driver(store, thread)
    found = _find_agent(store, thread)
    if holder is None and found is not None:
        role, agent = find_player(found.run_dir)
        pid = None if driver is None else _pid(driver)
        since = _begun(found.run_dir)
        return Running(thread, role, agent, pid, found.group, since, driver is not None)
    told = driver if holder is None else holder
    if told is None:
        return None
    role, agent = (str(told[name]) if told.get(name) else None for name in ("role", "agent"))
    since = told.get("since")
    return Running(
        thread=thread,
        role=role,
        agent=agent,
        pid=_pid(told),
        group=None if found is None else found.group,
        since=since if isinstance(since, int) else None,
        is_driven=driver is not None,
    )


def is_at_work(store: Store, thread: ThreadId) -> bool:
    """Tell whether anybody is at work on *thread*."""
    # The locks are looked at first: to look for an agent without an engine costs more.
    is_locked = find_holder(store, thread) or find_driver(store, thread)
    return bool(is_locked) or _find_agent(store, thread) is not None


def list_running(store: Store) -> list[Running]:
    """List all that is at work in *store*, the newest thread first."""
    found = (find_running(store, thread) for thread in list_traces(store))
    return [running for running in found if running is not None]


def running_rows(store: Store, *, now_ms: int) -> list[dict[str, Any]]:
    """Give a row for each thread that somebody works on, for `uwf ps`."""
    return [_row(store, running, now_ms) for running in list_running(store)]


def show_status(status: str, running: Running | None) -> str:
    """Give the *status* of a thread as people mean it: who is at work makes it ``running``."""
    if running is None:
        return status
    # A driver may sleep until a limit ends; an agent at work says that it has.
    is_over = status == "waiting" and running.group is not None
    return RUNNING if status == "ready" or is_over else status


def _find_snapshot(store: Store, thread: ThreadId) -> Snapshot | None:
    try:
        head = find_head(store, thread)
        return None if head is None else read_snapshot(store, head.commit)
    except StoreDamaged:
        return None


class _Agent(NamedTuple):
    run_dir: str
    group: int


def _find_agent(store: Store, thread: ThreadId) -> _Agent | None:
    """Give the agent that is at work on *thread*, whether or not its engine lives."""
    for run_dir in list_runs(store, thread):
        group = find_group(run_dir, run_dir + ALIVE)
        if group is not None and _is_held(run_dir):
            return _Agent(run_dir, group)
    return None


def _is_held(run_dir: str) -> bool:
    if read_process_start(os.getpid()) is not None:
        # The group was seen to hold it.
        return True
    # Without /proc its number is only what was written there once.
    return is_held(run_dir + ALIVE)


def _pid(told: dict[str, Any]) -> int | None:
    pid = told.get("pid")
    return pid if isinstance(pid, int) and told.get("host") == os.uname().nodename else None


def _begun(run_dir: str) -> int | None:
    try:
        return os.stat(os.path.join(run_dir, PID)).st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _row(store: Store, running: Running, now_ms: int) -> dict[str, Any]:
    snapshot = _find_snapshot(store, running.thread)
    record = None if snapshot is None else snapshot.record
    return {
        "thread": running.thread,
        "status": None if record is None else show_status(record.status, running),
        "workflow": None if record is None else record.workflow,
        "workflowName": None if record is None else record.workflow_name,
        "role": running.role,
        "agent": running.agent,
        "pid": running.pid,
        "group": running.group,
        "since": running.since,
        "elapsedMs": None if running.since is None else max(0, now_ms - running.since),
        "driven": running.is_driven,
    }
