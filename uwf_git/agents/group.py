"""Process groups: ending all of one, and knowing that it has ended.

Owns: signals. Knows nothing of: agents, output.
Always true: after ``stop_group`` nothing of the group runs any more, unless it is stuck in the
kernel; and a group is signalled only while its number can be no other's: a number is not given
away while its leader is not reaped, or while any member lives.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

# Most groups end at once, and whoever waits for an agent waits for this as well.
_FIRST_TICK_S = 0.001
_LONGEST_TICK_S = 0.01

# A killed process may still have to be torn down; longer means that it hangs in the kernel.
_TEAR_DOWN_S = 2.0


def stop_group(leader: "subprocess.Popen[bytes]", *, grace_s: float) -> None:
    """End the group that *leader* leads: ask, wait at most *grace_s*, kill.

    Raises:
        KeyboardInterrupt: Ctrl-C came during the wait. Nothing was waited for then, since
            whoever presses it twice is in a hurry; the group has ended all the same.
    """
    if leader.returncode is not None and not _lives(leader.pid):
        return
    try:
        ask_group(leader.pid)
        if _ended(leader, within_s=grace_s):
            return
    except KeyboardInterrupt:
        _kill(leader)
        raise
    _kill(leader)


def ask_group(group: int) -> None:
    """Ask all of a group to end; the caller knows that its number is no other's."""
    _signal_group(group, signal.SIGTERM)
    # A stopped process cannot obey before it goes on.
    _signal_group(group, signal.SIGCONT)


def kill_group(group: int) -> None:
    """Kill all of a group; the caller knows that its number is no other's."""
    _signal_group(group, signal.SIGKILL)


def _kill(leader: "subprocess.Popen[bytes]") -> None:
    kill_group(leader.pid)
    leader.wait()
    _ended(leader, within_s=_TEAR_DOWN_S)


def _ended(leader: "subprocess.Popen[bytes]", *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    tick_s = _FIRST_TICK_S
    # Asking for the leader's status reaps it; a zombie would be a member for ever.
    if leader.poll() is None or _exists(leader.pid):
        # Less than it takes to look through /proc, and mostly enough.
        time.sleep(_FIRST_TICK_S)
    while leader.poll() is None or _lives(leader.pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(tick_s)
        tick_s = min(2 * tick_s, _LONGEST_TICK_S)
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    # Darwin refuses with EPERM where Linux finds no process: when only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _lives(group: int) -> bool:
    if not _exists(group):
        return False
    members = list_members(group)
    return members is None or bool(members)


def list_members(group: int) -> list[int] | None:
    """List the group's members that live, or None where there is no /proc.

    Orphans that nobody reaps (a container whose first process does not care) stay zombies for
    ever; a signal number 0 reaches them, but they do nothing any more.
    """
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:  # It ended just now.
            continue
        # The second field is the name in parentheses, which may hold anything.
        state, _, pgrp = stat.rpartition(")")[2].split()[:3]
        if int(pgrp) == group and state not in "ZX":
            members.append(int(entry.name))
    return members if members or Path("/proc/self/stat").exists() else None
