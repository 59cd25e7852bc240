"""Signals that ask us to end, noted instead of obeyed at once.

Owns: which ones, and what stood there before. Knows nothing of: what is ended meanwhile.
Always true: what was there before is there again afterwards; only the main thread may note
signals, and in any other nothing is noted.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_signals(noted: list[int]) -> Iterator[None]:
    """Add signals that ask us to end to *noted*, so that there is time to end a program first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [(each, signal.signal(each, note)) for each in asked]
    try:
        yield
    finally:
        for number, action in before:
            signal.signal(number, signal.SIG_DFL if action is None else action)
