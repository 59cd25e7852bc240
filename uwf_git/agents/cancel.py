"""Cancel the work of one thread of Python from another one: Ctrl-C reaches only the main thread."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")

_OF_THREAD = threading.local()

_WAKE_S = 0.5


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


def wait_for_one(futures: Collection["Future[Result]"]) -> set["Future[Result]"]:
    """Return those of *futures* that are done, as soon as one is; Ctrl-C is noticed meanwhile.

    The kernel may give the signal to another thread, and Python handles it in the main one only:
    so that one wakes now and then.
    """
    from concurrent.futures import (  # noqa: PLC0415 (with logging behind it; few have branches)
        FIRST_COMPLETED,
        wait,
    )

    while True:
        done, _ = wait(futures, timeout=_WAKE_S, return_when=FIRST_COMPLETED)
        if done or not futures:
            return done
