"""Cancelling the work of another thread of Python."""

import signal
import threading
from concurrent.futures import Future

import pytest

from uwf_git.agents.group import cancellable, check_cancelled, wait_for_one


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


def test_a_wait_ends_with_what_is_done() -> None:
    done: Future[int] = Future()
    done.set_result(1)

    assert wait_for_one([Future(), done]) == {done}
    assert wait_for_one([]) == set()


def test_ctrl_c_that_another_thread_of_python_receives_ends_a_wait() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    never: Future[None] = Future()

    def receive() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    other = threading.Timer(0.05, receive)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_one([never])
    finally:
        signal.signal(signal.SIGINT, before)
        other.join()
