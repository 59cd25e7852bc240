"""Cancel the work of one thread of Python from another one: Ctrl-C reaches only the main thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OF_THREAD = threading.local()


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """Let *cancelled* interrupt what this thread of Python does, where it calls ``check``."""
    before = getattr(_OF_THREAD, "cancelled", None)
    _OF_THREAD.cancelled = cancelled
    try:
        yield
    finally:
        _OF_THREAD.cancelled = before


def check_cancelled() -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does, if this thread of Python is to stop."""
    cancelled = getattr(_OF_THREAD, "cancelled", None)
    if cancelled is not None and cancelled.is_set():
        raise KeyboardInterrupt
