"""Who works on a thread, and whether this process belongs to it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.run_files import find_group, find_last_output_ms, find_run_start_ms
from uwf_git.commands.agent_run.activity import RUNNING, list_possibly_active
from uwf_git.commands.agent_run.runs import find_player
from uwf_git.commands.split.family import Family
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.processes import (
    list_processes,
    read_environ,
    read_name,
    read_process,
    read_process_start,
)
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.local_files import RunDir, list_check_runs, list_run_dirs
from uwf_git.store.threads.lock import find_driver, find_holder
from uwf_git.store.threads.snapshot import read_snapshot

# Who works on which thread of this store now, from lock files and run directories.
#
# A process counts by pid and start time, an agent by the lock that it holds open, so a reused pid
# is never taken for it. Looking takes no lock that a step may want.


class Running(NamedTuple):
    thread: ThreadId
    role: str | None

    agent: str | None

    pid: int | None
    """The engine's pid; None if it is dead and its agent works on, or on another machine."""

    group: int | None
    """The agent's process group; None if there is no agent, or it is unknown."""

    since: int | None
    """Start of the step, or of the drive between two steps, in milliseconds since 1970."""

    is_driven: bool

    last_output: int | None = None
    """When its agent printed last, or else began, in milliseconds since 1970."""

    def view(self, **more: Any) -> dict[str, Any]:
        return {
            "role": self.role,
            "agent": self.agent,
            "pid": self.pid,
            "group": self.group,
            "since": self.since,
            **more,
            "driven": self.is_driven,
            "lastOutput": self.last_output,
        }


def find_running(store: Store, thread: ThreadId) -> Running | None:
    """Return the step, driver or orphaned agent that works on *thread*, or None."""
    holder, driver = find_holder(store, thread), find_driver(store, thread)
    run, group = _find_agent(store, thread)
    output = None if run is None else find_last_output_ms(run.path)
    if holder is None and run is not None:
        role, agent = find_player(run)
        pid = None if driver is None else _pid(driver)
        since = find_run_start_ms(run.path)
        return Running(thread, role, agent, pid, group, since, driver is not None, output)
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
        group=group,
        since=since if isinstance(since, int) else None,
        is_driven=driver is not None,
        last_output=output,
    )


def is_at_work(store: Store, thread: ThreadId) -> bool:
    # Locks first: the search for an orphaned agent costs more.
    is_locked = find_holder(store, thread) or find_driver(store, thread)
    return bool(is_locked) or _find_agent(store, thread)[0] is not None


def is_any_at_work(store: Store, family: Family) -> bool:
    # The thread first, which costs least.
    if is_at_work(store, family.root):
        return True
    return any(is_at_work(store, each) for each in list_possibly_active(store) if each in family)


def stamp_work(store: Store) -> dict[ThreadId, tuple[object, ...]]:
    """Return what tells the work on each thread from earlier work on it; no object is read."""
    return {
        thread: (
            find_holder(store, thread),
            find_driver(store, thread),
            [each.path for each in list_run_dirs(store, thread)],
        )
        for thread in list_possibly_active(store)
    }


def list_running(store: Store, root: ThreadId | None = None) -> list[Running]:
    """List the threads of *store*, or *root* and its branches, that are worked on, newest first."""
    family = None if root is None else Family(store, root)
    threads = list_possibly_active(store)
    found = (find_running(store, each) for each in threads if family is None or each in family)
    return [running for running in found if running is not None]


def running_rows(
    store: Store, *, now_ms: int, root: ThreadId | None = None
) -> list[dict[str, Any]]:
    """Return the rows of `uwf ps`, one for each thread that is being worked on.

    After them one for each process that an agent left running (*status* ``left``, Linux). With
    *root* only those of that thread and its branches.
    """
    family = None if root is None else Family(store, root)
    rows = [_row(store, running, now_ms) for running in list_running(store, root)]
    left = (each for each in _list_left(store) if family is None or each.thread in family)
    return rows + [{**_row(store, each, now_ms), "status": "left"} for each in left]


def _list_left(store: Store) -> Iterator[Running]:
    """Yield processes that agents left when they had answered: their turn's directory is gone."""
    for process in list_processes() or ():
        environ = read_environ(process.pid)
        thread, step_dir = environ.get(THREAD_VARIABLE, ""), environ.get("UWF_STEP_DIR")
        if environ.get("UWF_REPO") != store.path or not is_thread_id(thread):
            continue
        if step_dir and not os.path.exists(step_dir):
            role, name = environ.get("UWF_ROLE"), read_name(process.pid)
            yield Running(
                ThreadId(thread), role, name, process.pid, process.group, None, is_driven=False
            )


def show_status(status: str, running: Running | None) -> str:
    """Return the *status* to show: a ready thread that is being worked on is ``running``."""
    if running is None:
        return status
    # While a thread waits for a limit its driver sleeps; an agent at work means the limit is over.
    is_over = status == "waiting" and running.group is not None
    return RUNNING if status == "ready" or is_over else status


def _find_agent(store: Store, thread: ThreadId) -> tuple[RunDir | None, int | None]:
    """Return the run and process group that are at work on *thread*, also if its engine is dead."""
    for run in (*list_run_dirs(store, thread), *list_check_runs(store, thread)):
        group = find_group(run.path, run.alive)
        # With /proc, find_group has seen that the group holds the lock.
        if group is not None and (read_process_start(os.getpid()) is not None or run.is_alive()):
            return run, group
    return None, None


def _pid(told: dict[str, Any]) -> int | None:
    pid = told.get("pid")
    return pid if isinstance(pid, int) and told.get("host") == os.uname().nodename else None


def _row(store: Store, running: Running, now_ms: int) -> dict[str, Any]:
    record = None
    with suppress(StoreDamaged):
        head = find_head(store, running.thread)
        record = None if head is None else read_snapshot(store, head.commit).record
    parent = None if record is None else record.parent_thread
    return {
        "thread": running.thread,
        "status": None if record is None else show_status(record.status, running),
        "workflow": None if record is None else record.workflow,
        "workflowName": None if record is None else record.workflow_name,
        **running.view(elapsedMs=None if running.since is None else max(0, now_ms - running.since)),
        **({} if parent is None else {"parentThread": parent}),
    }


# Whether this process belongs to an agent that a thread waits for.
#
# Such a process can never see the end of that thread's work: the thread waits for the process
# itself.

THREAD_VARIABLE = "UWF_THREAD_ID"


def _inside_thread(thread: ThreadId) -> Refused:
    return Refused(
        f"thread {thread} waits for the agent that runs this command, so its work cannot end "
        "before this command does",
        code="inside-thread",
        hint="end the agent with its result, and wait outside of it",
        thread=thread,
    )


def refuse_inside(store: Store, thread: ThreadId, environ: Mapping[str, str]) -> None:
    """Check that *thread* does not wait for this process, which has the environment *environ*."""
    own = environ.get(THREAD_VARIABLE)
    if own == thread and is_at_work(store, thread):
        raise _inside_thread(thread)
    # Without the variable it is no agent: a program may run threads and wait for them.
    if own and (
        _is_ancestor(find_holder(store, thread)) or _is_ancestor(find_driver(store, thread))
    ):
        raise _inside_thread(thread)


def _is_ancestor(holder: dict[str, Any] | None) -> bool:
    """Check whether the *holder* of a lock is a process that started this one."""
    process = read_process(os.getppid())
    while holder is not None and process is not None:
        if (process.pid, process.start) == (holder.get("pid"), holder.get("start")):
            return True
        process = read_process(process.parent)
    return False
