import errno
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import raising

from uwf_git.agents.limited_fork import (
    LimitedRunBug,
    LimitedRunDied,
    LimitHit,
    RunLimits,
    run_limited,
)
from uwf_git.engine.expression import evaluate_condition
from uwf_git.errors import Refused, StoreDamaged

SHORT = RunLimits(wall_s=0.1)

on_linux = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is in use"
)


pytestmark = pytest.mark.usefixtures("tidy")


def wait_for_ever() -> NoReturn:
    while True:
        signal.pause()


def spin_for_ever() -> NoReturn:
    while True:
        pass


@settings(max_examples=30, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_value_comes_out_as_it_is(value: Any) -> None:
    assert run_limited(lambda: value) == value


class Odd(StoreDamaged):
    code = "odd"
    exit_status = 7

    def __init__(self, node: str) -> None:
        super().__init__(f"node {node} is odd\ud800", hint="even it out", node=node, at=[1, {}])


def test_an_error_comes_out_with_all_that_it_says() -> None:
    with pytest.raises(StoreDamaged) as caught:
        run_limited(raising(Odd("4KNM2PXR3B1QW")))
    error, original = caught.value, Odd("4KNM2PXR3B1QW")
    assert str(error) == str(original)
    for said in ("message", "hint", "facts", "code", "exit_status"):
        assert getattr(error, said) == getattr(original, said)


@pytest.mark.parametrize(
    ("work", "trace"),
    [
        (lambda: int("many"), "ValueError: invalid literal"),
        (object, "not JSON serializable"),
        (lambda: sys.exit(0), "SystemExit: 0"),
    ],
)
def test_a_bug_in_the_work_is_a_bug_here_with_the_childs_trace(
    work: Callable[[], Any], trace: str
) -> None:
    with pytest.raises(LimitedRunBug, match="planner's conditions") as caught:
        run_limited(work, what="planner's conditions")
    assert trace in str(caught.value)
    assert "Traceback" in str(caught.value)


@pytest.mark.parametrize(
    ("work", "happened"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "killed by SIGTERM"),
        (lambda: os._exit(3), "ended with status 3"),
        (lambda: os._exit(0), "ended with status 0"),
    ],
)
def test_a_child_that_dies_without_an_answer_is_reported(
    work: Callable[[], Any], happened: str
) -> None:
    with pytest.raises(LimitedRunDied, match=happened) as caught:
        run_limited(work)
    assert (caught.value.exit_status, caught.value.code) == (1, "fence-broken")


@pytest.mark.parametrize("work", [wait_for_ever, spin_for_ever])
def test_time_is_limited_whether_the_work_waits_or_spins(work: Callable[[], NoReturn]) -> None:
    with pytest.raises(LimitHit, match="choosing took too much time") as caught:
        run_limited(work, limits=SHORT, what="choosing")
    assert caught.value.facts == {"what": "choosing", "limit": "time"}
    assert (caught.value.exit_status, caught.value.code) == (1, "fence-hit")


def test_work_that_switches_its_alarm_off_is_ended_all_the_same() -> None:
    def deaf() -> NoReturn:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        wait_for_ever()

    with pytest.raises(LimitHit, match="too much time"):
        run_limited(deaf, limits=SHORT)


def test_an_alarm_that_the_parent_handles_or_blocks_ends_the_child_all_the_same() -> None:
    alarms: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda number, _frame: alarms.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        with pytest.raises(LimitHit, match="too much time"):
            run_limited(wait_for_ever, limits=SHORT)
        assert signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGALRM, old)
    assert alarms == []


@on_linux
def test_memory_is_limited_beyond_what_is_in_use_already() -> None:
    small = RunLimits(memory_bytes=64 << 20)
    assert run_limited(lambda: len(bytearray(32 << 20)), limits=small) == 32 << 20
    with pytest.raises(LimitHit, match="too much memory"):
        run_limited(lambda: len(bytearray(256 << 20)), limits=small)


def test_a_long_answer_does_not_deadlock_and_a_longer_one_is_refused() -> None:
    limits = RunLimits(answer_bytes=2_000_000)
    assert run_limited(lambda: "x" * 1_900_000, limits=limits) == "x" * 1_900_000
    with pytest.raises(LimitHit, match="too long an answer"):
        run_limited(lambda: "x" * 2_100_000, limits=limits)


@on_linux
def test_a_fence_never_widens_the_limits_it_was_born_with() -> None:
    def limits() -> list[Any]:
        return [resource.getrlimit(each) for each in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]

    def nested() -> list[Any]:
        return [limits(), run_limited(limits, limits=RunLimits(memory_bytes=1 << 40, cpu_s=60))]

    outer, inner = run_limited(nested)
    assert inner == outer
    assert outer[1] == [1, 2]


def test_child_does_not_flush_or_run_exit_handlers_of_the_parent() -> None:
    script = """
import atexit, sys
from uwf_git.agents.limited_fork import LimitedRunBug, run_limited
atexit.register(print, "at exit")
sys.stdout.write("buffered ")
def leave(): sys.exit(1)
def interrupt(): raise KeyboardInterrupt
def chatter(): print("from the child")
for work in (chatter, leave, interrupt):
    try:
        run_limited(work)
    except LimitedRunBug:
        print("told", end=" ")
    finally:
        print("finally", end=" ")
"""
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=buffered
    )
    assert ran.stdout == "buffered finally told finally told finally at exit\n"
    assert ran.stderr == ""


def test_the_child_does_not_finalise_the_parents_garbage() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    class Loud:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            os.write(writing, b"!")

    gc.disable()
    try:
        Loud()
        run_limited(gc.collect)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
        gc.collect()
        assert os.read(reading, 9) == b"!"
    finally:
        gc.enable()
        os.close(reading)
        os.close(writing)


def test_an_interrupt_waits_for_the_child_and_is_the_parents_alone() -> None:
    def interrupt_both() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getppid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_limited(interrupt_both)
    # Called for its effect: `or` returns the answer.
    assert run_limited(lambda: os.kill(os.getpid(), signal.SIGINT) or "done") == "done"  # type: ignore[func-returns-value]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_another_thread_takes_waits_for_the_child_too(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def take() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.raise_signal(number)

    def fork_and_be_asked() -> int:
        child = fork()
        if child:
            thread = threading.Thread(target=take)
            thread.start()
            thread.join()
        return child

    fork, ended = os.fork, []
    monkeypatch.setattr(os, "fork", fork_and_be_asked)
    old = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ended.append(run_limited(lambda: 7))
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, old)
    assert ended == []
    assert number not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_parent_that_lets_the_kernel_reap_gets_its_answer_too() -> None:
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run_limited(lambda: 7) == 7
        with pytest.raises(LimitHit, match="too much time"):
            run_limited(
                lambda: (signal.signal(signal.SIGALRM, signal.SIG_IGN), wait_for_ever()),
                limits=SHORT,
            )
        with pytest.raises(LimitedRunDied, match="ended with status None"):
            run_limited(lambda: os._exit(3))
    finally:
        signal.signal(signal.SIGCHLD, old)


def test_the_fence_works_from_any_thread_while_others_run() -> None:
    answers: list[Any] = []
    stop = threading.Event()
    bystander = threading.Thread(target=stop.wait)
    bystander.start()
    workers = [
        threading.Thread(target=lambda: answers.append(run_limited(lambda: "done")))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stop.set()
    bystander.join()
    assert answers == ["done"] * 3


def test_no_new_process_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.EAGAIN, "Resource temporarily unavailable")
    monkeypatch.setattr(os, "fork", raising(full))
    with pytest.raises(LimitedRunDied, match="no new process"):
        run_limited(lambda: 1)


HOSTILE = {
    "a gigabyte of padding": "$length($pad('x', 1e9)) > 0",
    "a regular expression that backtracks": "$contains(prompt, /(a+)+$/)",
    "endless recursion": "($f := function($n) { 1 + $f($n + 1) }; $f(0) > 0)",
    "an endless tail call": "($f := function($n) { $f($n + 1) }; $f(0) > 0)",
    "a cross product": "$count([1..10000].[1..10000]) > 0",
    "a long sum": "$sum([1..1e7]) > 0",
    "doubling a string": (
        "($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; "
        "$length($f('xxxxxxxxxx', 40)) > 0)"
    ),
}


@on_linux
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_condition_ends_in_an_error_and_soon(name: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(Refused) as caught:
        run_limited(lambda: evaluate_condition(HOSTILE[name], {"prompt": "a" * 40 + "!"}))
    assert time.monotonic() - began_s < 20
    assert caught.value.code in {"fence-hit", "condition-failed"}
    assert caught.value.exit_status == 1
