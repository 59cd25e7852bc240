"""Work of several threads of Python."""

import threading

import pytest

from uwf_git.agents.group import check_cancelled, run_at_once


def test_an_interrupt_of_one_reaches_the_others() -> None:
    begun = threading.Event()
    told: list[str] = []

    def work(number: int) -> int:
        if number == 0:
            begun.wait(30)
            raise KeyboardInterrupt
        begun.set()
        pause = threading.Event()
        for _ in range(3000):
            try:
                check_cancelled()
            except KeyboardInterrupt:
                told.append("cancelled")
                raise
            pause.wait(0.01)
        return number

    with pytest.raises(KeyboardInterrupt):
        run_at_once(work, [0, 1], jobs=2)

    assert told == ["cancelled"]
