import os
import signal
import threading

import pytest

from uwf_git.agents.group import deferred_signals

ASKED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def test_signals_that_ask_us_to_end_are_noted() -> None:
    noted: list[int] = []
    with deferred_signals(noted):
        for number in ASKED:
            os.kill(os.getpid(), number)

    assert noted == ASKED


def test_former_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in ASKED]
    with pytest.raises(KeyError), deferred_signals([]):
        raise KeyError

    assert [signal.getsignal(number) for number in ASKED] == before


def test_other_threads_note_nothing_and_change_nothing() -> None:
    seen: list[object] = []

    def look() -> None:
        with deferred_signals([]):
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert seen == [before]
