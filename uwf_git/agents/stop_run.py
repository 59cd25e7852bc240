"""Stopping a run from outside: the agent that another engine started, or that outlived its engine.

Owns: knowing which process group a run directory speaks of, and ending it.
Knows nothing of: threads, why it is to be stopped.
Always true: a group is signalled only while one of its members has the run's own lock file open,
which only the agent and what it started do, or while one lives that was a member when that was
so: a number that was given away again is never hit. Who left the group (setsid) is not found.
Where there is no /proc, the lock being held and the number written beside it have to do.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from uwf_git.agents.group import ask_group, kill_group, list_members
from uwf_git.agents.spool import PID, Finished, look_up

IsHeld = Callable[[], bool]
"""Tells whether the lock of a run is held; asked only where there is no /proc."""

_FIRST_TICK_S = 0.005
_LONGEST_TICK_S = 0.05

# A killed process may still have to be torn down; longer means that it hangs in the kernel.
_TEAR_DOWN_S = 2.0


def find_group(run_dir: str, alive_path: str) -> int | None:
    """Give the process group of the agent that runs in *run_dir*; None if nobody can tell.

    *alive_path* is the lock that it holds as long as it lives. Where there is no /proc, this is
    what was written once; whoever asks has to see that the lock is held.
    """
    # What holds the lock after the end is a daemon that the agent left behind.
    if isinstance(look_up(run_dir, alive_is_held=True), Finished):
        return None
    group = _read_group(run_dir)
    return group if group is not None and _is_of_run(group, alive_path) is not False else None


def stop_run(run_dir: str, alive_path: str, *, grace_s: float, is_held: IsHeld) -> bool:
    """End the agent that runs in *run_dir*: ask, wait at most *grace_s*, kill.

    Returns:
        Whether there was one to end. Whoever runs it learns of its end as of any other.
    """
    group = find_group(run_dir, alive_path)
    # Children that have closed the lock are asked and waited for as well.
    known = {} if group is None else _find_births(group)

    def lives() -> bool:
        # Looked up each time: what was asked may have ended, and its number be another's.
        nonlocal known
        if group is None:
            return False
        now, is_ours = _find_births(group), _is_of_run(group, alive_path)
        is_ours = is_held() if is_ours is None else is_ours or bool(known.items() & now.items())
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


def _read_group(run_dir: str) -> int | None:
    try:
        group = int(Path(run_dir, PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    # To a signal, zero and one would mean ourselves and everybody.
    return group if group > 1 else None


def _is_of_run(group: int, alive_path: str) -> bool | None:
    """Tell whether a member of *group* has the lock open; None where there is no /proc."""
    try:
        lock = os.stat(alive_path)
    except OSError:
        lock = None
    # The shell that leads the group is there as long as the agent is: it need not be searched for
    # among all processes, which whoever looks at hundreds of runs would do hundreds of times.
    if lock is not None and _has_open(group, lock):
        return True
    members = list_members(group)
    if members is None:
        return None
    return lock is not None and any(_has_open(pid, lock) for pid in members)


def _find_births(group: int) -> Mapping[int, str]:
    """Give when each member of *group* began; with its number, that is one process and no other."""
    births = {}
    for pid in list_members(group) or ():
        # It ended just now.
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
            # The second field is the name in parentheses, which may hold anything; the 22nd is
            # when it began, see proc(5).
            births[pid] = stat.rpartition(")")[2].split()[19]
    return births


def _has_open(pid: int, lock: os.stat_result) -> bool:
    folder = f"/proc/{pid}/fd"
    # It ended just now, or it is another user's.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if os.path.samestat(os.stat(f"{folder}/{name}"), lock):
                    return True
    return False
