"""Killing: a child that dies at any one moment of what it does.

Owns: counting moments and dying at one of them. Knows nothing of: what is done.
A moment is every call by which Python asks something of the system: to open, write, flush, sync,
rename, link, remove, lock …; between two of them nothing changes outside of the process.
"""

import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def dies_at(moment: int, action: Callable[[], object]) -> bool:
    """Do *action* in a child that is killed at its *moment*-th moment; tell whether it was."""
    pid = os.fork()
    if pid == 0:
        _live(moment, action)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the action failed"
    return os.WIFSIGNALED(status)


def _live(moment: int, action: Callable[[], object]) -> None:
    lived = 0

    def profile(_frame: FrameType, event: str, function: Any) -> None:
        nonlocal lived
        if event == "c_call" and _asks_the_system(function):
            lived += 1
            if lived == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    status = 1
    try:
        sys.setprofile(profile)
        action()
        status = 0
    finally:
        sys.setprofile(None)
        os._exit(status)


def _asks_the_system(function: Any) -> bool:
    return getattr(function, "__module__", None) in {"posix", "fcntl", "_io"} or isinstance(
        getattr(function, "__self__", None), io.IOBase
    )
