"""Orphans: the processes that a program left behind, found again and ended.

Owns: the one place that asks Linux to hand orphans to us, and the walk through /proc.
Knows nothing of: which program, why it ends.
Always true: nobody is signalled who is not a descendant of this process; children that were ours
before are left alone. Where there is no /proc (macOS, Windows) nothing is found, and a process
group is all that can be ended.
Why: opencode and gemini give every tool a session of its own, which a signal to their group does
not reach, and a daemon forks twice to lose its parent. A child subreaper (prctl(2)) gets both.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.01

# A killed process may still have to be torn down; longer means that it hangs in the kernel.
_TEAR_DOWN_S = 2.0


class _Process(NamedTuple):
    pid: int
    parent: int
    is_zombie: bool


class Orphans:
    """Those who come to us from now on because their parent has ended."""

    def __init__(self) -> None:
        self._are_ours = _set_subreaper(is_on=True)
        self._known: set[int] = set()
        if self._are_ours and _has_children():
            self._known = {each.pid for each in _processes() if each.parent == os.getpid()}

    def close(self) -> None:
        """Let orphans go elsewhere again."""
        if self._are_ours:
            _set_subreaper(is_on=False)

    def keep(self, pid: int) -> None:
        """Leave *pid* alone, which was started since."""
        self._known.add(pid)

    def end(self, *, grace_s: float) -> None:
        """End all there are and all that they started: ask, wait at most *grace_s*, kill."""
        if not self._are_ours:
            return
        killing_from = time.monotonic() + grace_s
        asked: set[int] = set()
        while living := self._living():
            now = time.monotonic()
            if now >= killing_from + _TEAR_DOWN_S:
                return
            for pid in living:
                if now >= killing_from:
                    _send(pid, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    _send(pid, signal.SIGTERM)
                    # A stopped process cannot obey before it goes on.
                    _send(pid, signal.SIGCONT)
            time.sleep(_TICK_S)

    def _living(self) -> set[int]:
        """List those who run, and take leave of those who have ended."""
        if not _has_children():
            return set()
        processes = _processes()
        ours = {os.getpid()}
        found: set[int] = set()
        while ours:
            born = {each for each in processes if each.parent in ours}
            born = {each for each in born if each.pid not in self._known | found}
            ours = {each.pid for each in born}
            found |= ours
        for each in processes:
            if each.pid in found and each.is_zombie:
                found.remove(each.pid)
                if each.parent == os.getpid():
                    with suppress(ChildProcessError):
                        os.waitpid(each.pid, os.WNOHANG)
        return found


def _set_subreaper(*, is_on: bool) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    # Only who runs another program needs it, and it costs some milliseconds.
    import ctypes  # noqa: PLC0415

    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0) == 0)


def _has_children() -> bool:
    """Tell whether there is any child, zombies and all; a walk through /proc costs milliseconds."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _processes() -> list[_Process]:
    """List every process that /proc shows."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:  # It ended just now.
            continue
        # The second field is the name in parentheses, which may hold anything.
        state, parent = stat.rpartition(")")[2].split()[:2]
        found.append(_Process(int(name), int(parent), state in "ZX"))
    return found


def _send(pid: int, number: signal.Signals) -> None:
    # A pid cannot be another's meanwhile: those who are ours are reaped by nobody but us, and
    # others only within the moment since /proc was read.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
