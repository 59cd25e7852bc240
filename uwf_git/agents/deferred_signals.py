"""Note SIGTERM, SIGINT and SIGHUP instead of ending at once; only in the main thread."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_signals(noted: list[int]) -> Iterator[None]:
    """Append received signals to *noted*, to end a program first; restore the handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [(each, signal.signal(each, note)) for each in ending]
    try:
        yield
    finally:
        for number, action in before:
            signal.signal(number, signal.SIG_DFL if action is None else action)
