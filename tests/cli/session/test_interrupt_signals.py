import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.conftest import Lives
from cli.program import Uwf

from uwf_git.cli.app.guard import run_guarded
from uwf_git.cli.caller import sigterm_as_interrupt

STUBBORN = """\
trap 'touch asked' TERM
(trap '' TERM; echo $$ >>pids; while :; do sleep 60; done) &
echo $! >>pids
echo $$ >>pids
echo "partly done"
touch begun
while :; do sleep 60 & wait; done
"""


def wait_for(path: Path, engine: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert engine.poll() is None
        assert time.monotonic() < deadline, f"nobody made {path.name}"
        time.sleep(0.01)


ASKED = [signal.SIGTERM, signal.SIGHUP]

# A process without a terminal gets the first one that it opens.
IN_A_TERMINAL = """
import os, sys
if os.isatty(1):
    os.close(os.open(os.ttyname(1), os.O_RDWR))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Restore signals that a test run under `nohup` ignores, for all its child processes."""
    before = {each: signal.signal(each, signal.SIG_DFL) for each in ASKED}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def engine(uwf: Uwf, *words: str, terminal: int | None = None) -> "subprocess.Popen[str]":
    """Start `uwf` on the store, with or without a terminal, and wait until the agent runs."""
    output = subprocess.PIPE if terminal is None else terminal
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, "-m", "uwf_git", *words],
        env={**os.environ, "UWF_REPO": str(uwf.session.repo)},
        cwd=uwf.place,
        stdout=output,
        stderr=output,
        text=True,
        start_new_session=True,
    )
    wait_for(uwf.place / "begun", process)
    return process


def left(uwf: Uwf, lives: Lives) -> tuple[str, str]:
    """Return the thread's status and the error of its last attempt; no process may be left."""
    assert [pid for pid in (uwf.place / "pids").read_text().split() if lives(int(pid))] == []
    assert uwf.json("ps") == []
    [row] = uwf.json("thread", "list")
    shown = uwf.json("thread", "show", row["thread"])
    return shown["status"], shown["error"]["kind"]


@pytest.mark.parametrize("number", ASKED)
@pytest.mark.parametrize("verb", ["run", "step"])
def test_terminated_engine_ends_its_agent_and_records_the_attempt(
    verb: str, number: signal.Signals, uwf: Uwf, lives: Lives
) -> None:
    """22: a signal hit only the engine, and its agent kept editing."""
    process = engine(uwf, "thread", verb, uwf.begun(uwf.agent(STUBBORN)))

    process.send_signal(number)
    # A second signal, as from a shell that ends, kills the agent at once.
    wait_for(uwf.place / "asked", process)
    process.send_signal(number)

    _out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert left(uwf, lives) == ("ready", "interrupted")


def test_end_of_the_terminal_ends_a_run_in_the_foreground(uwf: Uwf, lives: Lives) -> None:
    thread = uwf.begun(uwf.agent("echo $$ >>pids; touch begun; exec sleep 60"))
    ours, theirs = pty.openpty()
    process = engine(uwf, "thread", "run", thread, terminal=theirs)
    os.close(theirs)

    os.close(ours)

    assert process.wait(timeout=30) == 130
    assert left(uwf, lives) == ("ready", "interrupted")


@pytest.mark.parametrize("number", ASKED)
def test_process_1_ends_when_it_is_asked(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    us = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: 1)

    def wait() -> int:
        os.kill(us, number)
        return 0

    assert run_guarded(wait, environ={}, as_json=lambda: False) == 130


@pytest.mark.parametrize("number", ASKED)
def test_signal_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with sigterm_as_interrupt():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
