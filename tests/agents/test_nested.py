import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import Lives, WaitFor
from refusing import raising

from uwf_git.agents.command_line import OnOutput
from uwf_git.agents.nested import NestedRequest, NestedRun, run_nested

pytestmark = pytest.mark.usefixtures("tidy")

Run = Callable[..., NestedRun]

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

# Two forks and a session of its own: what a daemon does, and what agent programs do for tools.
DAEMON = "setsid sh -c 'sleep 60 & echo $! >{file}' </dev/null >/dev/null 2>&1; "

CALLER = """
import os, sys
from uwf_git.agents.nested import NestedRequest, run_nested
ran = run_nested(NestedRequest(
    argv=("/bin/sh", "-c", sys.argv[1]), environment=dict(os.environ), workdir=".", given=b"",
    folder=sys.argv[2], grace_s=0.2,
))
print(ran.outcome, ran.exit_code, ran.stdout.decode(), end="")
"""


def ignore(_chunk: bytes) -> None:
    pass


def call(script: str, place: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", CALLER, script, str(place / "spool")]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a shell script as a nested program."""

    def start(
        script: str, *, on_stdout: OnOutput = ignore, on_stderr: OnOutput = ignore, **options: Any
    ) -> NestedRun:
        places = {"workdir": str(tmp_path), "folder": str(tmp_path / "spool")}
        given = {"environment": dict(os.environ), "given": b"", **places}
        request = NestedRequest(argv=("/bin/sh", "-c", script), **given | options)
        return run_nested(request, on_stdout=on_stdout, on_stderr=on_stderr)

    return start


@pytest.fixture
def pid_of(wait_for: WaitFor, tmp_path: Path) -> Callable[[str], int]:
    """Read the pid that a script wrote to a file."""
    return lambda name: int(wait_for(tmp_path / name))


def test_outputs_are_kept_in_separate_files(run: Run, tmp_path: Path) -> None:
    heard: list[bytes] = []
    logged: list[bytes] = []

    ran = run("echo out; echo err >&2; exit 3", on_stdout=heard.append, on_stderr=logged.append)

    assert (ran.outcome, ran.exit_code, ran.stdout, ran.stderr) == ("exited", 3, b"out\n", b"err\n")
    assert (b"".join(heard), b"".join(logged)) == (b"out\n", b"err\n")
    assert (tmp_path / "spool/stdout").read_bytes() == b"out\n"
    assert stat.S_IMODE((tmp_path / "spool/stderr").stat().st_mode) == 0o600


@pytest.mark.parametrize("size", [0, 400_000, 5_000_000])
def test_all_that_is_given_can_be_read(run: Run, size: int) -> None:
    assert run("cat", given=b"x" * size).stdout == b"x" * size


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reserve room for a file")
def test_room_for_the_answer_is_reserved_before_the_program_starts(run: Run) -> None:
    assert int(run("stat -c %b spool/stdout").stdout) * 512 >= 256 * 1024


def test_input_need_not_be_read(run: Run) -> None:
    ran = run("exec 0<&-; echo done", given=b"x" * 1_000_000, timeout_s=10)

    assert (ran.outcome, ran.stdout) == ("exited", b"done\n")


def test_workdir_environment_and_input_are_the_requested_ones(run: Run, tmp_path: Path) -> None:
    ran = run("pwd; echo $A; env", environment={"A": "x y", "PATH": os.environ["PATH"]})

    assert ran.stdout.startswith(f"{tmp_path}\nx y\n".encode())
    names = {line.split(b"=")[0] for line in ran.stdout.splitlines()[2:]}
    assert names == {b"A", b"PATH", b"PWD", b"UWF_NESTED"}


def test_nothing_but_its_three_files_is_open(run: Run) -> None:
    ran = run("cd /dev/fd && echo *")

    # The shell that lists them may have one of its own open for that.
    assert set(ran.stdout.split()) <= {b"0", b"1", b"2", b"3"}


def test_program_that_ignores_the_request_is_killed(run: Run, tmp_path: Path, lives: Lives) -> None:
    ran = run(
        "trap '' TERM; echo begun; sleep 60 & echo $$ $! >pids; wait; sleep 60",
        timeout_s=0.2,
        grace_s=0.1,
    )

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("timed-out", 137, b"begun\n")
    assert [pid for pid in (tmp_path / "pids").read_text().split() if lives(int(pid))] == []


@ON_LINUX
@pytest.mark.parametrize("end", ["echo done", "trap '' TERM; sleep 60"])
def test_daemon_is_found_and_ended(
    run: Run, pid_of: Callable[[str], int], lives: Lives, end: str
) -> None:
    run(DAEMON.format(file="pid") + end, timeout_s=0.3, grace_s=0.1)

    assert not lives(pid_of("pid"))


@ON_LINUX
def test_daemon_that_ignores_the_request_is_killed(
    run: Run, pid_of: Callable[[str], int], lives: Lives
) -> None:
    script = "setsid sh -c 'trap \"\" TERM; (echo $$ >pid; while :; do sleep 1; done) &'; sleep 0.1"

    run(script, grace_s=0.1)

    assert not lives(pid_of("pid"))


def test_own_children_are_left_alone(run: Run) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        run(DAEMON.format(file="pid"))

        assert other.poll() is None
        other.kill()


def test_flood_is_stopped_and_stays_on_disk(run: Run, tmp_path: Path) -> None:
    ran = run("head -c 50000000 /dev/zero; sleep 60", max_output_bytes=1_000_000)

    assert (ran.outcome, len(ran.stdout)) == ("too-much-output", 1_000_000)
    assert (tmp_path / "spool/stdout").stat().st_size > 1_000_000


def test_flood_that_has_ended_is_too_much_as_well(run: Run) -> None:
    assert run("head -c 101 /dev/zero", max_output_bytes=100).outcome == "too-much-output"
    assert run("head -c 100 /dev/zero", max_output_bytes=100).outcome == "exited"
    assert len(run("head -c 100000 /dev/zero >&2").stderr) == 64 * 1024


def test_flood_does_not_hide_that_the_time_is_over(run: Run) -> None:
    ran = run("while :; do echo x; echo x >&2; done", timeout_s=0.2)

    assert ran.outcome == "timed-out"


@pytest.mark.parametrize("script", ["sleep 60", "echo begun; sleep 60", "exec >&- 2>&-; sleep 60"])
def test_silence_has_a_limit(run: Run, script: str) -> None:
    ran = run(script, silence_s=0.2, timeout_s=30)

    assert (ran.outcome, ran.duration_ms < 10_000) == ("silent", True)


@pytest.mark.parametrize("where", ["1", "2"])
def test_every_byte_breaks_the_silence(run: Run, where: str) -> None:
    ran = run(f"for i in 1 2 3 4 5 6; do sleep 0.1; printf . >&{where}; done", silence_s=0.4)

    assert ran.outcome == "exited"


def test_output_that_is_truncated_goes_on_being_heard(run: Run) -> None:
    heard: list[bytes] = []

    run("echo first; sleep 1; : >/dev/stdout; echo 2; sleep 0.2", on_stdout=heard.append)

    assert b"".join(heard) == b"first\n2\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_being_asked_to_end_ends_the_program(
    tmp_path: Path, pid_of: Callable[[str], int], lives: Lives, number: signal.Signals
) -> None:
    script = f"echo said; trap '' TERM; sleep 60 & echo $! >{tmp_path}/pid; wait"
    with call(script, tmp_path) as caller:
        pid = pid_of("pid")
        caller.send_signal(number)
        told, _ = caller.communicate(timeout=10)

    assert told == b"interrupted 137 said\n"
    assert not lives(pid)


@ON_LINUX
def test_nothing_outlives_a_caller_that_is_killed(
    tmp_path: Path, pid_of: Callable[[str], int], lives: Lives
) -> None:
    daemon = DAEMON.format(file=tmp_path / "daemon")
    script = f"{daemon} trap '' TERM; sleep 60 & echo $! >{tmp_path}/pid; wait"
    with call(script, tmp_path) as caller:
        pids = [pid_of("pid"), pid_of("daemon")]
        caller.kill()

    deadline = time.monotonic() + 10
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_listener_that_fails_ends_the_program(
    run: Run, pid_of: Callable[[str], int], lives: Lives
) -> None:
    with pytest.raises(ZeroDivisionError):
        run("echo $$ >pid; echo x; sleep 60", on_stdout=raising(ZeroDivisionError()))

    assert not lives(pid_of("pid"))


def test_what_a_program_started_may_tell_of_its_end(run: Run, tmp_path: Path) -> None:
    script = "(sleep 0.2; touch told) & exit 4"

    assert run(script, linger_s=20.0).exit_code == 4
    assert (tmp_path / "told").exists()


def test_what_runs_on_for_longer_is_ended(run: Run, lives: Lives, tmp_path: Path) -> None:
    assert run("sleep 60 & echo $! >pid", linger_s=0.1).outcome == "exited"

    assert not lives(int((tmp_path / "pid").read_text()))


def test_program_that_kills_its_group_has_a_run_all_the_same(run: Run) -> None:
    ran = run("echo out; kill -s KILL 0")

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("exited", 137, b"out\n")
