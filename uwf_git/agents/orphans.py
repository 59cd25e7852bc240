"""Find and end the processes that a program left behind.

opencode and gemini start every tool in a session of its own, which a signal to their group does
not reach, and a daemon forks twice to lose its parent. As child subreaper (prctl(2), Linux) we
become their parent. Only descendants of this process are signalled, and no child that was there
before. Without /proc nothing is found, and only the process group can be ended.
"""

import os
import signal
import sys
import time
from contextlib import suppress

from uwf_git.processes import list_processes

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.01

# The kernel may still tear down a killed process; one that takes longer hangs there.
_TEAR_DOWN_S = 2.0


class Orphans:
    """The processes that become our children from now on because their parent ended."""

    def __init__(self) -> None:
        self._are_ours = _set_subreaper(is_on=True)
        self._known: set[int] = set()
        if self._are_ours and _has_children():
            self._known = {
                each.pid for each in list_processes() or () if each.parent == os.getpid()
            }

    def close(self) -> None:
        """Be subreaper no more."""
        if self._are_ours:
            _set_subreaper(is_on=False)

    def keep(self, pid: int) -> None:
        """Do not end *pid*, a child that was started since."""
        self._known.add(pid)

    def end(self, *, grace_s: float) -> None:
        """End orphans and their descendants: SIGTERM, wait at most *grace_s*, SIGKILL."""
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
                    # A stopped process handles SIGTERM only when it is continued.
                    _send(pid, signal.SIGCONT)
            time.sleep(_TICK_S)

    def _living(self) -> set[int]:
        """Return the orphans and descendants that run, and reap those that ended."""
        if not _has_children():
            return set()
        processes = list_processes() or []
        ours = {os.getpid()}
        found: set[int] = set()
        while ours:
            born = {each for each in processes if each.parent in ours}
            born = {each for each in born if each.pid not in self._known | found}
            ours = {each.pid for each in born}
            found |= ours
        for each in processes:
            if each.pid in found and each.has_ended:
                found.remove(each.pid)
                if each.parent == os.getpid():
                    with suppress(ChildProcessError):
                        os.waitpid(each.pid, os.WNOHANG)
        return found


def _set_subreaper(*, is_on: bool) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    # Only adapters that run a program need it, and it costs some milliseconds.
    import ctypes  # noqa: PLC0415

    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0) == 0)


def _has_children() -> bool:
    """Return whether we have a child or zombie; cheaper than a search through /proc."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _send(pid: int, number: signal.Signals) -> None:
    # The pid was not reused: only we reap our children, and for other descendants /proc was read
    # a moment ago.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
