import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from agents.conftest import Program, WaitFor
from refusing import refuses

from uwf_git.agents.run_files import (
    RunDirUnusable,
    create_run_outputs,
    keep_exit_code,
    read_run_group,
    read_run_result,
    read_run_state,
)

pytestmark = pytest.mark.usefixtures("tidy")

ENGINE = """
import sys
from uwf_git.agents.process import run_agent
from uwf_git.agents.command_line import AgentRequest, Listener
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
    run_dir = place(pid=b"12\n", exit=b"%d\n" % status, stdout=b"", stderr=b"")

    assert read_run_state(run_dir, alive_is_held=is_held) == "finished"
    assert read_run_result(run_dir, max_output_bytes=1).exit_code == status


@pytest.mark.parametrize("torn", [b"", b"1", b"12", b"x\n", b"1234\n", b"-1\n"])
def test_status_that_was_not_written_whole_does_not_count(place: Place, torn: bytes) -> None:
    run_dir = place(pid=b"12\n", exit=torn)

    assert read_run_state(run_dir, alive_is_held=True) == "alive"
    assert read_run_state(run_dir, alive_is_held=False) == "lost"


def test_began_without_an_end_is_lost_and_nothing_at_all_never_began(place: Place) -> None:
    assert read_run_state(place(), alive_is_held=False) == "not-started"
    assert read_run_state(place(stdout=b""), alive_is_held=False) == "not-started"
    assert read_run_state(place(pid=b"12\n"), alive_is_held=False) == "lost"


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

    assert before == "alive"
    assert read_run_state(run_dir, alive_is_held=False) == "finished"
    ran = read_run_result(run_dir, max_output_bytes=1000)
    assert (ran.outcome, ran.exit_code) == ("exited", 7)
    assert (ran.stdout, ran.stderr) == (b"late\n", b"log\n")


def test_collected_run_keeps_to_the_limits(place: Place) -> None:
    run_dir = place(pid=b"12\n", exit=b"0\n", stdout=b"x" * 11, stderr=b"a" + b"z" * 65536)

    ran = read_run_result(run_dir, max_output_bytes=10)

    assert (ran.outcome, ran.stdout) == ("too-much-output", b"x" * 10)
    assert ran.stderr == b"z" * 65536


@pytest.mark.parametrize("name", ["pid", "exit", "stdout", "stderr"])
def test_pipe_in_a_files_place_is_not_waited_for(place: Place, name: str) -> None:
    files = {"pid": b"12\n", "exit": b"0\n", "stdout": b"said", "stderr": b""}
    run_dir = place(**{each: files[each] for each in files if each != name})
    os.mkfifo(Path(run_dir, name))

    state = read_run_state(run_dir, alive_is_held=False)
    group = read_run_group(run_dir)
    if name in {"stdout", "stderr"}:
        with pytest.raises(RunDirUnusable, match=f"{name}: it is not a regular file"):
            read_run_result(run_dir, max_output_bytes=10)
    else:
        read_run_result(run_dir, max_output_bytes=10)

    assert state == ("lost" if name == "exit" else "finished")
    assert group == (None if name == "pid" else 12)


def test_endless_output_is_read_up_to_the_limit(place: Place) -> None:
    run_dir = place(pid=b"12\n", exit=b"0\n", stdout=b"", stderr=b"")
    for name in ("pid", "exit", "stdout", "stderr"):
        os.truncate(Path(run_dir, name), 15 * 2**40)

    ran = read_run_result(run_dir, max_output_bytes=10)

    assert (ran.outcome, ran.stdout, len(ran.stderr)) == ("lost", bytes(10), 64 * 1024)
    assert read_run_group(run_dir) is None


@pytest.mark.parametrize("name", ["pid", "exit"])
def test_run_that_began_is_never_begun_again(place: Place, name: str) -> None:
    run_dir = place(**{name: b"0\n", "stdout": b"paid for"})

    with refuses("already-begun", match=f"already begun in {run_dir}"):
        create_run_outputs(run_dir)

    assert Path(run_dir, "stdout").read_bytes() == b"paid for"


@pytest.mark.parametrize("failing", range(3))
def test_full_disk_is_noticed_before_a_run_begins(
    place: Place, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    asked: list[int] = []

    def refuse(_descriptor: int, _request: int, space: bytes) -> int:
        asked.append(struct.unpack("@hhqqiI4i", space)[3])
        if len(asked) > failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return 0

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(fcntl, "ioctl", refuse)

    with refuses(RunDirUnusable, match="No space left on device", status=1):
        create_run_outputs(place())

    assert asked == [1, 256 * 1024, 64 * 1024][: failing + 1]
    assert os.listdir(place()) == []
    assert read_run_state(place(), alive_is_held=False) == "not-started"


@pytest.mark.parametrize("torn", [None, b"", b"1"])
def test_status_in_the_reserved_room_counts_if_the_other_is_torn(
    place: Place, torn: bytes | None, tmp_path: Path
) -> None:
    files = {"pid": b"12\n", "exit.reserved": b"17\n", "stdout": b"said", "stderr": b""}
    run_dir = place(**files, **({} if torn is None else {"exit": torn}))
    for name, time_s in (("pid", 100), ("exit.reserved", 160)):
        os.utime(tmp_path / "run" / name, (time_s, time_s))

    assert read_run_state(run_dir, alive_is_held=True) == "finished"
    ran = read_run_result(run_dir, max_output_bytes=9)
    assert (ran.outcome, ran.exit_code) == ("exited", 17)
    assert (ran.started_ms, ran.duration_ms) == (100_000, 60_000)

    keep_exit_code(Path(run_dir), 17)

    assert Path(run_dir, "exit").read_bytes() == b"17\n"
    assert not Path(run_dir, "exit.reserved").exists()


@pytest.mark.parametrize("there", [None, b"", b"7", "pipe"])
def test_status_that_the_shell_could_not_write_is_kept(
    place: Place, there: bytes | str | None
) -> None:
    run_dir = Path(place(pid=b"12\n"))
    if isinstance(there, bytes):
        (run_dir / "exit").write_bytes(there)
    elif there == "pipe":
        os.mkfifo(run_dir / "exit")

    keep_exit_code(run_dir, 7)
    keep_exit_code(run_dir, 8)

    assert (run_dir / "exit").read_bytes() == b"7\n"
    assert sorted(os.listdir(run_dir)) == ["exit", "pid"]


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
