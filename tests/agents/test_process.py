import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import Lives, Program, WaitFor
from refusing import raising, refuses

from uwf_git.agents.command_line import AgentRequest, AgentRun, Listener, OnOutput
from uwf_git.agents.nested import watched_by_descriptor, watched_by_stdin
from uwf_git.agents.process import AgentInterrupted, SpawnFailed, WorkdirMissing, run_agent
from uwf_git.agents.run_files import RunDirUnusable

pytestmark = pytest.mark.usefixtures("tidy")

Run = Callable[..., AgentRun]


def ignore(_chunk: bytes) -> None:
    pass


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run an argv as an agent, in tmp_path; options go to the request."""

    def start(
        *argv: str, on_stderr: OnOutput = ignore, on_stdout: OnOutput | None = None, **options: Any
    ) -> AgentRun:
        settings: dict[str, Any] = {
            "environment": dict(os.environ),
            "workdir": str(tmp_path),
            "run_dir": str(tmp_path / "run"),
            "grace_s": 5,
        }
        request = AgentRequest(argv=argv, **settings | options)
        return run_agent(request, Listener(on_stderr, on_stdout))

    return start


@pytest.mark.parametrize("status", [0, 7, 127, 255])
def test_output_and_status_come_as_they_are(run: Run, program: Program, status: int) -> None:
    ran = run(program(f"echo out; printf 'log\\377' >&2; exit {status}"))

    assert (ran.outcome, ran.exit_code) == ("exited", status)
    assert (ran.stdout, ran.stderr) == (b"out\n", b"log\xff")


def test_files_tell_the_run_as_well(run: Run, program: Program, tmp_path: Path) -> None:
    run(program("echo out; echo log >&2; exit 7"))

    files = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert files.pop("pid").strip().isdigit()
    assert files == {"stdout": b"out\n", "stderr": b"log\n", "exit": b"7\n"}


@pytest.mark.parametrize("spoil", ["rm exit", "rm exit; mkfifo exit", "rm exit; ln -s /x/y exit"])
def test_status_is_kept_though_its_file_is_gone(
    run: Run, program: Program, tmp_path: Path, spoil: str
) -> None:
    ran = run(program(f"cd run; {spoil}; echo out; exit 7"))

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("exited", 7, b"out\n")
    assert (tmp_path / "run" / "exit").read_bytes() == b"7\n"


def test_status_is_known_though_its_file_cannot_be_written(run: Run, program: Program) -> None:
    ran = run(program("cd run; rm exit; mkdir -p exit/full; echo out"))

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("exited", 0, b"out\n")


def test_every_argument_arrives_as_it_is(run: Run, program: Program) -> None:
    show = program(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    words = ["", "a b", "$HOME", "'\"`;|&", "-n", "*", "línea\nnueva", "日本語", "\\"]

    assert json.loads(run(show, *words).stdout) == words


def test_environment_is_what_was_given_and_nothing_else(run: Run) -> None:
    # "s" and "d" are names that a shell script likes to use.
    given = {"A": "x y\nz", "s": "kept", "d": "kept", "日": "本"}

    ran = run(
        sys.executable,
        "-Ic",
        "import json, os; print(json.dumps(dict(os.environ)))",
        environment={**given, "PYTHONUTF8": "1"},
    )

    seen = json.loads(ran.stdout)
    shells_own = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "PYTHONUTF8"}
    # dash drops names that are no identifiers to it.
    assert {name: seen[name] for name in seen if name not in shells_own | {"日"}} == {
        name: value for name, value in given.items() if name != "日"
    }


def test_missing_work_directory_is_refused(run: Run, program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, problem in (("gone", "is not there"), ("file", "is not a directory")):
        with pytest.raises(WorkdirMissing, match=f"{name} {problem}") as caught:
            run(program("true"), workdir=str(tmp_path / name))
        assert "--workdir" in str(caught.value.hint)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter everywhere")
def test_closed_work_directory_is_refused(run: Run, program: Program, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    with pytest.raises(WorkdirMissing, match="may not be entered"):
        run(program("true"), workdir=str(tmp_path / "closed"))


def test_too_long_argument_is_reported(run: Run) -> None:
    with pytest.raises(SpawnFailed, match=r"longer than the system allows") as caught:
        run("/bin/true", "x" * 4_000_000)
    assert "context" in str(caught.value.hint)


def test_failed_start_leaves_room_for_the_next(run: Run) -> None:
    with pytest.raises(SpawnFailed):
        run("/bin/true", "x\0")

    assert run("/bin/true").exit_code == 0


def test_nothing_runs_twice_in_one_run_directory(run: Run, program: Program) -> None:
    count = program("echo x >>count; exit 3")
    run(count)

    with refuses("already-begun"):
        run(count)

    assert Path(count).with_name("count").read_text() == "x\n"


def test_unusable_run_directory_is_reported(run: Run, program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RunDirUnusable, match=r"file/run cannot be used: Not a directory"):
        run(program("true"), run_dir=str(tmp_path / "file" / "run"))


def test_end_is_noticed_at_once(run: Run, tmp_path: Path) -> None:
    def measure(number: int) -> float:
        started = time.perf_counter()
        run("/bin/true", run_dir=str(tmp_path / str(number)))
        return time.perf_counter() - started

    # Well below the tick at which the log is forwarded.
    assert min(map(measure, range(10))) < 0.03


@pytest.mark.parametrize("descriptor", [1, 2])
def test_output_is_forwarded_while_the_agent_runs(
    run: Run, program: Program, tmp_path: Path, descriptor: int
) -> None:
    heard = []

    def answer(chunk: bytes) -> None:
        heard.append(chunk)
        (tmp_path / "heard").touch()

    script = "echo ready; until [ -e heard ]; do sleep 0.01; done; echo done"
    listener = {1: "on_stdout", 2: "on_stderr"}[descriptor]
    ran = run(program(f"exec >&{descriptor}; {script}"), timeout_s=10, **{listener: answer})

    assert ran.outcome == "exited"
    said = (ran.stdout, ran.stderr)[descriptor - 1]
    assert b"".join(heard) == b"ready\ndone\n" == said


def test_log_that_is_written_by_name_is_not_torn(run: Run, program: Program) -> None:
    heard: list[bytes] = []

    ran = run(program("echo first >/dev/stderr; echo last >/dev/stderr"), on_stderr=heard.append)

    assert ran.stderr.endswith(b"last\n")
    assert b"\0" not in ran.stderr + b"".join(heard)


def test_agent_that_ignores_the_request_to_stop_is_killed(
    run: Run, program: Program, tmp_path: Path, lives: Lives
) -> None:
    stubborn = program("trap '' TERM; sleep 60 & echo $$ $! >pids; wait; sleep 60")

    ran = run(stubborn, timeout_s=0.2, grace_s=0.2)

    assert (ran.outcome, ran.exit_code) == ("timed-out", None)
    pids = (tmp_path / "pids").read_text().split()
    assert [pid for pid in pids if lives(int(pid))] == []


def test_stopped_agent_can_still_be_ended(run: Run, program: Program) -> None:
    ran = run(program("kill -STOP $$"), timeout_s=0.2)

    assert (ran.outcome, ran.exit_code) == ("timed-out", 143)


def test_daemon_that_holds_the_outputs_is_not_waited_for(
    run: Run, program: Program, tmp_path: Path, lives: Lives
) -> None:
    started = time.monotonic()

    ran = run(program("sleep 60 & echo $! >pid; echo done"))

    daemon = int((tmp_path / "pid").read_text())
    assert lives(daemon)
    assert ran.left_running == (f"sleep ({daemon})",)
    os.kill(daemon, signal.SIGKILL)
    assert (ran.outcome, ran.stdout) == ("exited", b"done\n")
    assert time.monotonic() - started < 30


def test_agent_inherits_the_lock_that_says_it_lives(
    run: Run, program: Program, tmp_path: Path
) -> None:
    lock = os.open(tmp_path / "alive", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)

    run(program("sleep 60 & echo $! >pid"), kept_fds=(lock,))

    os.close(lock)
    with (tmp_path / "alive").open() as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        fcntl.flock(other, fcntl.LOCK_EX)


@pytest.mark.parametrize("descriptor", ["1", "2"])
def test_endless_output_is_stopped(
    run: Run, program: Program, tmp_path: Path, descriptor: str
) -> None:
    limit = 1024 * 1024

    ran = run(program(f"yes >&{descriptor}"), max_output_bytes=limit, max_logged_bytes=2 * limit)

    assert (ran.outcome, ran.exit_code) == ("too-much-output", 143)
    if descriptor == "1":
        assert ran.stdout == b"y\n" * (limit // 2)
    else:
        assert len(ran.stderr) == 64 * 1024
        assert (tmp_path / "run" / "stderr").stat().st_size > 2 * limit


def test_long_log_costs_no_answer(run: Run, program: Program, tmp_path: Path) -> None:
    heard: list[bytes] = []
    loud = program("echo answer; yes 'a line' | head -c 30000000 >&2; echo last >&2")

    ran = run(loud, on_stderr=heard.append)

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("exited", 0, b"answer\n")
    assert len(ran.stderr) == 64 * 1024
    for log in (ran.stderr, b"".join(heard)):
        assert log.endswith(b"last\n")
    (tmp_path / "run" / "stderr").unlink()  # pytest keeps temporary directories for a while


def test_too_much_output_is_too_much_though_the_agent_has_ended(
    run: Run, program: Program, tmp_path: Path
) -> None:
    ran = run(program("head -c 50000000 /dev/zero"))

    assert (ran.outcome, len(ran.stdout)) == ("too-much-output", 16 * 1024 * 1024)
    (tmp_path / "run" / "stdout").unlink()  # pytest keeps temporary directories for a while


def test_interrupt_ends_the_agent_and_hands_over_what_it_left(
    run: Run, program: Program, tmp_path: Path, lives: Lives
) -> None:
    waiting = program("sleep 60 & echo $$ $! >pids; echo partly; echo ready >&2; wait")

    with pytest.raises(AgentInterrupted) as caught:
        run(waiting, on_stderr=lambda _: signal.raise_signal(signal.SIGINT))

    ran = caught.value.run
    assert (ran.outcome, ran.exit_code, ran.stdout) == ("interrupted", 143, b"partly\n")
    pids = (tmp_path / "pids").read_text().split()
    assert [pid for pid in pids if lives(int(pid))] == []


def test_interrupt_while_it_is_started_ends_the_agent(
    run: Run, program: Program, lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping, started = program("sleep 60"), list[int]()

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", Interrupted)
        with pytest.raises(AgentInterrupted) as caught:
            run(sleeping)

    assert caught.value.run.outcome == "interrupted"
    assert not lives(started[0])


def test_second_interrupt_does_not_wait_for_a_stubborn_agent(run: Run, program: Program) -> None:
    # It interrupts when it is asked to end, so the second Ctrl-C comes while its end is waited for.
    stubborn = program(
        f"trap 'kill -INT {os.getpid()}' TERM; echo ready >&2; while :; do sleep 60 & wait; done"
    )
    started = time.monotonic()
    with pytest.raises(AgentInterrupted) as caught:
        run(stubborn, on_stderr=lambda _chunk: signal.raise_signal(signal.SIGINT), grace_s=60)

    assert caught.value.run.exit_code is None
    assert time.monotonic() - started < 10


def test_listener_that_fails_ends_the_agent(
    run: Run, program: Program, tmp_path: Path, lives: Lives
) -> None:
    stays = program("echo $$ >pid; echo ready >&2; sleep 60")
    with pytest.raises(ZeroDivisionError):
        run(stays, on_stderr=raising(ZeroDivisionError()))

    assert not lives(int((tmp_path / "pid").read_text()))


def test_agent_whose_shell_was_killed_is_lost_and_ended(
    run: Run, program: Program, tmp_path: Path, lives: Lives, wait_for: WaitFor
) -> None:
    ran = run(program("echo $$ >pid; kill -KILL $PPID; sleep 60"))

    assert (ran.outcome, ran.exit_code) == ("lost", None)
    assert not lives(int(wait_for(tmp_path / "pid")))


TELLS = "echo $$ >told; echo out; echo err >&2; kill -s TERM $$"
STAYS = "echo $$ >told; exec sleep 60"


def spawn(
    command: Sequence[str], place: Path, *, stdin: int = subprocess.PIPE, kept: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=place,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=kept,
        start_new_session=True,
    )


def start_by_number(script: str, place: Path) -> tuple["subprocess.Popen[bytes]", int]:
    read_end, write_end = os.pipe()
    command = watched_by_descriptor(read_end, (script,))
    child = spawn(command, place, stdin=subprocess.DEVNULL, kept=(read_end,))
    os.close(read_end)
    return child, write_end


def test_program_has_the_shells_streams_to_itself(program: Program, tmp_path: Path) -> None:
    child, tether = start_by_number(program(TELLS), tmp_path)
    os.write(tether, b"\n")
    out, err = child.communicate(timeout=10)
    os.close(tether)

    assert (out, err, child.returncode) == (b"out\n", b"err\n", 143)


def test_program_ends_when_the_tether_breaks(
    program: Program, tmp_path: Path, lives: Lives, wait_for: WaitFor
) -> None:
    by_number, tether = start_by_number(program(STAYS), tmp_path)
    first = int(wait_for(tmp_path / "told"))
    os.close(tether)
    by_number.communicate(timeout=10)
    (tmp_path / "told").unlink()
    (tmp_path / "stdin").write_bytes(b"given")
    by_stdin = spawn(watched_by_stdin(str(tmp_path), (program(STAYS),)), tmp_path)
    second = int(wait_for(tmp_path / "told"))
    by_stdin.communicate(timeout=10)

    assert not lives(first)
    assert not lives(second)
