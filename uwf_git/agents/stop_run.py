"""Stop a run from outside: an agent that another engine started, or that outlived its engine.

A group is signalled only while a member has the run's lock file open, which only the agent and its
children do, or while a process lives that was a member at that time: so a reused id is never hit.
A process that left the group (setsid) is not found. Without /proc, the held lock and the group in
the pid file decide.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from uwf_git.agents.group import ask_group, kill_group, list_members
from uwf_git.agents.run_files import RunFinished, read_run_group, read_run_state
from uwf_git.processes import list_processes

IsHeld = Callable[[], bool]
"""Returns whether the lock of a run is held; called only where there is no /proc."""

_FIRST_TICK_S = 0.005
_LONGEST_TICK_S = 0.05

# The kernel may still tear down a killed process; one that takes longer hangs there.
_TEAR_DOWN_S = 2.0


def find_group(run_dir: str, alive_path: str) -> int | None:
    """Return the process group of the agent that runs in *run_dir*; None if it is unknown.

    *alive_path* is the lock that it holds while it lives. Without /proc the result is what the
    pid file says, and the caller has to check the lock.
    """
    # After the end, a daemon that the agent left behind may hold the lock.
    if isinstance(read_run_state(run_dir, alive_is_held=True), RunFinished):
        return None
    group = read_run_group(run_dir)
    return group if group is not None and _is_of_run(group, alive_path) is not False else None


def is_left_behind(run_dir: str, alive_path: str) -> bool:
    """Return whether the held lock *alive_path* is held by daemons of an agent that has ended.

    True is proven: nobody in the agent's group has the lock open, and a process outside holds it
    that can be seen from here. A holder that cannot be seen (another user, container or machine,
    no /proc) may be the agent. The run has no living engine, which would hold the lock too.
    """
    group = read_run_group(run_dir)
    if group is None or _is_of_run(group, alive_path) is not False:
        return False
    try:
        lock = os.stat(alive_path)
    except OSError:
        return False
    return any(_holds(each.pid, lock) for each in list_processes() or () if each.group != group)


def stop_run(run_dir: str, alive_path: str, *, grace_s: float, is_held: IsHeld) -> bool:
    """End the agent that runs in *run_dir*: SIGTERM, wait at most *grace_s*, SIGKILL.

    Return whether there was one. Its engine sees an ordinary end.
    """
    group = find_group(run_dir, alive_path)
    # Members that have closed the lock file are stopped too.
    known = set() if group is None else _find_members(group)

    def lives() -> bool:
        # Checked before each signal: the group may have ended and its id be reused.
        nonlocal known
        if group is None:
            return False
        now, is_ours = _find_members(group), _is_of_run(group, alive_path)
        is_ours = is_held() if is_ours is None else is_ours or bool(known & now)
        known = now
        return is_ours

    if group is None or not lives():
        return False
    ask_group(group)
    if not _has_ended(lives, within_s=grace_s):
        kill_group(group)
        _has_ended(lives, within_s=_TEAR_DOWN_S)
    return True


def _has_ended(lives: Callable[[], bool], *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    for tick_s in _ticks():
        if not lives():
            return True
        if time.monotonic() >= deadline:
            break
        time.sleep(tick_s)
    return False


def _ticks() -> Iterator[float]:
    tick_s = _FIRST_TICK_S
    while True:
        yield tick_s
        tick_s = min(2 * tick_s, _LONGEST_TICK_S)


def _is_of_run(group: int, alive_path: str) -> bool | None:
    """Return whether a member of *group* has the lock open; None where there is no /proc."""
    try:
        lock = os.stat(alive_path)
    except OSError:
        lock = None
    # The shell that leads the group lives as long as the agent. Checking it first saves a search
    # through all processes for each of hundreds of runs.
    if lock is not None and _has_open(group, lock):
        return True
    members = list_members(group)
    if members is None:
        return None
    return lock is not None and any(_has_open(each.pid, lock) for each in members)


def _find_members(group: int) -> set[tuple[int, int]]:
    """Return pid and start of each member: together they are never reused."""
    return {(each.pid, each.start) for each in list_members(group) or ()}


def _has_open(pid: int, lock: os.stat_result) -> bool:
    return any(True for _ in _list_open(pid, lock))


def _holds(pid: int, lock: os.stat_result) -> bool:
    """Return whether a process holds the flock(2), and not only looks at its file."""
    for name in _list_open(pid, lock):
        with suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}", encoding="utf-8") as file:
            # Source: proc(5), /proc/<pid>/fdinfo, "lock".
            if any(line.startswith("lock:") and " FLOCK " in line for line in file):
                return True
    return False


def _list_open(pid: int, lock: os.stat_result) -> Iterator[str]:
    """Yield the descriptors by which a process has *lock* open."""
    folder = f"/proc/{pid}/fd"
    # It ended just now, or belongs to another user.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if os.path.samestat(os.stat(f"{folder}/{name}"), lock):
                    yield name
