"""Work of several threads of Python."""

import threading

import pytest

from uwf_git.agents.group import check_cancelled
from uwf_git.commands.step.at_once import run_at_once


def test_results_are_in_order_whatever_ends_first() -> None:
    gate = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            gate.wait(30)
        else:
            gate.set()
        return number * 2

    assert run_at_once(work, [0, 1], jobs=2) == [0, 2]
    assert run_at_once(work, [], jobs=2) == []
    assert run_at_once(work, [3], jobs=2) == [6]


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
