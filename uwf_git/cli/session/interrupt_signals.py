"""Treat SIGTERM and SIGHUP as Ctrl-C while an agent runs.

Python would die at once: the agent would go on alone, and its attempt would not be recorded. A
signal that is ignored (`nohup`) stays ignored; only the main thread handles signals.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKED = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM and SIGHUP."""
    is_main = threading.current_thread() is threading.main_thread()
    mine = [each for each in _ASKED if is_main and signal.getsignal(each) is signal.SIG_DFL]
    for each in mine:
        signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each in mine:
            signal.signal(each, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
