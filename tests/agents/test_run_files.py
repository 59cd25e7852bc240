import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from agents.conftest import Program, WaitFor

from uwf_git.agents.request import AgentRun
from uwf_git.agents.run_files import (
    AlreadyBegun,
    RunAlive,
    RunDirUnusable,
    RunFinished,
    RunLost,
    RunNotStarted,
    create_run_outputs,
    read_run_result,
    read_run_state,
)

pytestmark = pytest.mark.usefixtures("tidy")

ENGINE = """
import sys
from uwf_git.agents.process import run_agent
from uwf_git.agents.request import AgentRequest, Listener
argv, workdir, run_dir = sys.argv[1:]
request = AgentRequest(argv=(argv,), environment={}, workdir=workdir, run_dir=run_dir)
run_agent(request, Listener())
"""

Place = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Make a run directory with the given files in it."""

    def make(**files: bytes) -> str:
        for name, content in files.items():
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / name).write_bytes(content)
        return str(tmp_path / "run")

    return make


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("status", [0, 7, 143])
def test_run_with_a_status_is_finished_even_if_the_lock_is_held(
    place: Place, status: int, *, is_held: bool
) -> None:
    run_dir = place(pid=b"12\n", exit=b"%d\n" % status)

    assert read_run_state(run_dir, alive_is_held=is_held) == RunFinished(status)


@pytest.mark.parametrize("torn", [b"", b"1", b"12", b"x\n", b"1234\n", b"-1\n"])
def test_status_that_was_not_written_whole_does_not_count(place: Place, torn: bytes) -> None:
    run_dir = place(pid=b"12\n", exit=torn)

    assert isinstance(read_run_state(run_dir, alive_is_held=True), RunAlive)
    assert isinstance(read_run_state(run_dir, alive_is_held=False), RunLost)


def test_lock_says_running_even_before_there_is_a_pid(place: Place) -> None:
    assert isinstance(read_run_state(place(stdout=b""), alive_is_held=True), RunAlive)


def test_began_without_an_end_is_lost_and_nothing_at_all_never_began(place: Place) -> None:
    assert isinstance(read_run_state(place(), alive_is_held=False), RunNotStarted)
    assert isinstance(read_run_state(place(stdout=b""), alive_is_held=False), RunNotStarted)
    assert isinstance(read_run_state(place(pid=b"12\n"), alive_is_held=False), RunLost)


def test_agent_that_outlives_its_engine_leaves_everything(
    program: Program, tmp_path: Path, wait_for: WaitFor
) -> None:
    agent = program("until [ -e go ]; do sleep 0.02; done; echo late; echo log >&2; exit 7")
    run_dir = str(tmp_path / "run")
    engine = subprocess.Popen([sys.executable, "-c", ENGINE, agent, str(tmp_path), run_dir])
    wait_for(tmp_path / "run" / "pid")

    engine.send_signal(signal.SIGKILL)
    engine.wait()
    before = read_run_state(run_dir, alive_is_held=True)
    (tmp_path / "go").touch()
    wait_for(tmp_path / "run" / "exit")

    assert isinstance(before, RunAlive)
    assert read_run_state(run_dir, alive_is_held=False) == RunFinished(7)
    ran = read_run_result(run_dir, max_output_bytes=1000)
    assert (ran.outcome, ran.exit_code, ran.stdout, ran.stderr) == (
        "exited",
        7,
        b"late\n",
        b"log\n",
    )


def test_collected_run_knows_its_times(place: Place, tmp_path: Path) -> None:
    run_dir = place(pid=b"12\n", exit=b"0\n", stdout=b"out", stderr=b"")
    os.utime(tmp_path / "run" / "pid", (1_760_000_000, 1_760_000_000))
    os.utime(tmp_path / "run" / "exit", (1_760_000_090, 1_760_000_090))

    assert read_run_result(run_dir, max_output_bytes=3) == AgentRun(
        outcome="exited",
        exit_code=0,
        stdout=b"out",
        stderr=b"",
        started_ms=1_760_000_000_000,
        duration_ms=90_000,
    )


def test_collected_run_keeps_to_the_limits(place: Place) -> None:
    run_dir = place(pid=b"12\n", exit=b"0\n", stdout=b"x" * 11, stderr=b"a" + b"z" * 65536)

    ran = read_run_result(run_dir, max_output_bytes=10)

    assert (ran.outcome, ran.stdout) == ("too-much-output", b"x" * 10)
    assert ran.stderr == b"z" * 65536


def test_lost_run_can_be_collected(place: Place) -> None:
    ran = read_run_result(place(pid=b"12\n", stdout=b"half", stderr=b""), max_output_bytes=10)

    assert (ran.outcome, ran.exit_code, ran.stdout) == ("lost", None, b"half")


def test_output_that_is_gone_cannot_be_collected(place: Place) -> None:
    with pytest.raises(RunDirUnusable, match=r"run/stdout: No such file"):
        read_run_result(place(pid=b"12\n", exit=b"0\n"), max_output_bytes=10)


@pytest.mark.parametrize("name", ["pid", "exit"])
def test_run_that_began_is_never_begun_again(place: Place, name: str) -> None:
    run_dir = place(**{name: b"0\n", "stdout": b"paid for"})

    with pytest.raises(AlreadyBegun, match=f"already begun in {run_dir}"):
        create_run_outputs(run_dir)

    assert Path(run_dir, "stdout").read_bytes() == b"paid for"


def test_outputs_of_a_run_that_never_began_are_replaced(place: Place) -> None:
    run_dir = place(stdout=b"old", stderr=b"old")

    with closing(create_run_outputs(run_dir)) as outputs:
        os.write(outputs.stdout.descriptor, b"new")
        assert (outputs.stdout.read(0, 2), outputs.stderr.read_tail(9)) == (b"ne", b"")


def test_outputs_are_private(place: Place) -> None:
    with closing(create_run_outputs(place())) as outputs:
        descriptors = (outputs.stdout.descriptor, outputs.stderr.descriptor)
        modes = [os.fstat(each).st_mode & 0o777 for each in descriptors]

    assert modes == [0o600, 0o600]


def test_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stderr").mkdir()

    with pytest.raises(RunDirUnusable, match="run cannot be used"):
        create_run_outputs(str(tmp_path / "run"))
