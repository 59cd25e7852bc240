import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import Lives, WaitFor
from refusing import raising

from uwf_git.agents.process import ToolRequest, ToolRun, run_tool

pytestmark = pytest.mark.usefixtures("tidy")

Run = Callable[..., ToolRun]

CALLER = """
import os, sys
from uwf_git.agents.process import ToolRequest, run_tool
request = ToolRequest(argv=("/bin/sh", "-c", sys.argv[1]), environment=dict(os.environ))
run_tool(request, on_output=lambda chunk: None)
"""


@pytest.fixture
def run() -> Run:
    """Run a shell command as a tool."""

    def start(
        script: str, *, on_output: Callable[[bytes], None] = lambda _: None, **options: Any
    ) -> ToolRun:
        argv = ("/bin/sh", "-c", script)
        request = ToolRequest(argv=argv, **{"environment": dict(os.environ)} | options)
        return run_tool(request, on_output=on_output)

    return start


def test_output_comes_in_the_order_in_which_it_was_printed(run: Run) -> None:
    heard: list[bytes] = []

    ran = run("echo one; echo two >&2; echo three; exit 3", on_output=heard.append)

    assert (ran.outcome, ran.exit_code, ran.left_out) == ("exited", 3, 0)
    assert b"".join(heard) == ran.head + ran.tail == b"one\ntwo\nthree\n"


def test_time_may_be_longer_than_poll_counts(run: Run) -> None:
    assert run("echo one", timeout_s=1e12).head == b"one\n"


def test_long_output_loses_its_middle(run: Run) -> None:
    ran = run("echo first; head -c 50000000 /dev/zero; echo last", max_output_bytes=1000)

    assert (len(ran.head), len(ran.tail)) == (500, 500)
    assert ran.head.startswith(b"first\n\0")
    assert ran.tail.endswith(b"\0last\n")
    assert ran.left_out == 50_000_000 + 11 - 1000


def test_command_may_tidy_up_when_its_time_is_over(run: Run) -> None:
    ran = run("trap 'echo bye; exit' TERM; sleep 60 & wait", timeout_s=0.2)

    assert (ran.outcome, ran.head) == ("timed-out", b"bye\n")


def test_flood_does_not_hide_that_the_time_is_over(run: Run) -> None:
    assert run("yes", timeout_s=0.2).outcome == "timed-out"


@pytest.mark.parametrize("daemon", ["sleep 60", "yes"])
def test_daemon_that_holds_the_output_is_not_waited_for(
    run: Run, tmp_path: Path, lives: Lives, daemon: str
) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()

    ran = run(f"{daemon} & echo $! >{pid}; echo done")

    assert time.monotonic() - started < 30
    assert ran.exit_code == 0
    if daemon == "sleep 60":
        assert ran.head == b"done\n"
        assert lives(int(pid.read_text()))
        os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_command_dies_with_its_agent(
    tmp_path: Path, wait_for: WaitFor, lives: Lives, number: signal.Signals
) -> None:
    script = f"trap '' TERM; sleep 60 & echo $$ $! >{tmp_path}/pids; wait"
    caller = subprocess.Popen([sys.executable, "-c", CALLER, script])
    pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]

    caller.send_signal(number)
    caller.wait()

    deadline = time.monotonic() + 10
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_listener_that_fails_ends_the_command(run: Run, tmp_path: Path, lives: Lives) -> None:
    with pytest.raises(ZeroDivisionError):
        run(f"echo $$ >{tmp_path}/pid; echo x; sleep 60", on_output=raising(ZeroDivisionError()))

    assert not lives(int((tmp_path / "pid").read_text()))
