"""Asked to end: who has an agent at work takes SIGTERM, and the end of its terminal, as Ctrl-C.

Owns: which signals, and what stood there before. Knows nothing of: what is under way.
Always true: a signal that is ignored (`nohup`) stays ignored, and only the main thread is asked.
Why: Python dies of both at once. Its agent would edit on alone, and nobody would record it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKED = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def taken_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for each signal that asks us to end."""
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
