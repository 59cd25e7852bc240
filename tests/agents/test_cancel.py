"""Cancelling the work of another thread of Python."""

import threading

import pytest

from uwf_git.agents.cancel import cancellable, check_cancelled


def test_work_goes_on_until_it_is_cancelled() -> None:
    cancelled = threading.Event()
    with cancellable(cancelled):
        check_cancelled()
        cancelled.set()
        with pytest.raises(KeyboardInterrupt):
            check_cancelled()
    check_cancelled()


def test_only_the_thread_that_said_so_is_cancelled() -> None:
    cancelled = threading.Event()
    cancelled.set()
    told: list[str] = []

    def look() -> None:
        try:
            check_cancelled()
            told.append("goes on")
        except KeyboardInterrupt:
            told.append("stopped")

    with cancellable(cancelled):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert told == ["goes on"]


def test_the_outer_cancel_counts_again_after_the_inner_one() -> None:
    outer, inner = threading.Event(), threading.Event()
    outer.set()
    with cancellable(outer):
        with cancellable(inner):
            check_cancelled()
        with pytest.raises(KeyboardInterrupt):
            check_cancelled()
