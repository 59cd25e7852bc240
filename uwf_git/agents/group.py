"""Process groups: signal all of one, and wait until it has ended.

A group is signalled only while its id cannot be reused: while its leader is not reaped, or while
any member lives.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress

from uwf_git.processes import Process, list_processes

# Most groups end at once, and every step waits for this.
_FIRST_TICK_S = 0.001
_LONGEST_TICK_S = 0.01

# The kernel may still tear down a killed process; one that takes longer hangs there.
_TEAR_DOWN_S = 2.0


def stop_group(leader: "subprocess.Popen[bytes]", *, grace_s: float) -> None:
    """End the group that *leader* leads: SIGTERM, wait at most *grace_s*, SIGKILL.

    Raises:
        KeyboardInterrupt: Ctrl-C came during the wait; the group was killed at once.
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
    """Send SIGTERM to a group; the caller knows that its id was not reused."""
    _signal_group(group, signal.SIGTERM)
    # A stopped process handles SIGTERM only when it is continued.
    _signal_group(group, signal.SIGCONT)


def leave_group(group: int, lock_path: str) -> None:
    """Leave *group* if we belong to it, and close the lock of its run that we inherited.

    A command that ends the agent it was called by would otherwise end itself before its work is
    done. The leader of a group cannot leave it.
    """
    if os.getpgrp() != group or os.getpid() == group:
        return
    os.setpgid(0, 0)
    # The engine takes an agent to be at work while the lock is open.
    with suppress(OSError):
        lock = os.stat(lock_path)
        for name in os.listdir("/dev/fd"):
            with suppress(OSError):
                if os.path.samestat(os.fstat(int(name)), lock):
                    os.close(int(name))


def kill_group(group: int) -> None:
    """Send SIGKILL to a group; the caller knows that its id was not reused."""
    _signal_group(group, signal.SIGKILL)


def _kill(leader: "subprocess.Popen[bytes]") -> None:
    kill_group(leader.pid)
    leader.wait()
    _ended(leader, within_s=_TEAR_DOWN_S)


def _ended(leader: "subprocess.Popen[bytes]", *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    tick_s = _FIRST_TICK_S
    # poll() reaps the leader; as a zombie it would remain a member.
    if leader.poll() is None or _exists(leader.pid):
        # Shorter than a search through /proc, and mostly enough.
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


def list_members(group: int) -> list[Process] | None:
    """List the living members of a group; None where there is no /proc.

    Zombies are left out: where the first process of a container reaps no orphans, they stay for
    ever, and kill(2) with signal 0 still finds them.
    """
    processes = list_processes()
    if processes is None:
        return None
    return [each for each in processes if each.group == group and not each.has_ended]
