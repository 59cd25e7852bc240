import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agents.conftest import Lives, Program, WaitFor
from refusing import refuses

from uwf_git.agents.group import _LET_GO, DetachRequest, spawn_detached

STARTER = """
import sys
from uwf_git.agents.group import DetachRequest, spawn_detached
program, workdir, log = sys.argv[1:]
child = spawn_detached(DetachRequest([program], {"A": "1"}, workdir, log))
print(child.pid, flush=True)
child.let_go()
sys.stdin.read()
"""


def request(tmp_path: Path, *argv: str) -> DetachRequest:
    return DetachRequest(argv, dict(os.environ), str(tmp_path), str(tmp_path / "logs" / "log"))


def finished(asked: DetachRequest) -> tuple[int, str]:
    """Start a program, wait for its end, and return its status and its log."""
    child = spawn_detached(asked)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    status = child.find_status()
    assert status is not None
    return status, Path(asked.log).read_text(encoding="utf-8")


def test_program_says_everything_to_its_log(program: Program, tmp_path: Path) -> None:
    asked = request(tmp_path, program("pwd; echo log >&2; cat; exit 7"))

    assert finished(asked) == (7, f"{tmp_path}\nlog\n")


def test_log_is_appended_to_and_private(program: Program, tmp_path: Path) -> None:
    asked = request(tmp_path, program("echo once"))
    finished(asked)

    assert finished(asked)[1] == "once\nonce\n"
    assert Path(asked.log).stat().st_mode & 0o777 == 0o600


def test_program_has_a_session_of_its_own(program: Program, tmp_path: Path) -> None:
    told = finished(request(tmp_path, program("echo $$; ps -o sid= -p $$")))[1].split()

    assert told[0] == told[1] != str(os.getsid(0))


def test_program_lives_on_when_its_starter_and_the_terminal_have_gone(
    program: Program, tmp_path: Path, lives: Lives, wait_for: WaitFor
) -> None:
    log = tmp_path / "log"
    endless = program("echo $A; while :; do sleep 60; done")
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, endless, str(tmp_path), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    wait_for(log)

    os.killpg(starter.pid, signal.SIGHUP)
    starter.communicate(timeout=10)

    assert lives(pid)
    os.killpg(pid, signal.SIGKILL)
    assert log.read_text(encoding="utf-8") == "1\n"


def test_missing_program_is_reported(tmp_path: Path) -> None:
    with refuses("not-detached", match="/no/such: No such file"):
        spawn_detached(request(tmp_path, "/no/such"))


def test_impossible_argument_is_reported(tmp_path: Path) -> None:
    with refuses("not-detached", match="embedded null byte"):
        spawn_detached(request(tmp_path, "/bin/echo", "a\0b"))


def test_unwritable_log_is_reported(program: Program, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("no folder")

    with refuses("not-detached", match="log"):
        spawn_detached(request(tmp_path, program("true")))


def test_log_is_not_written_through_a_link(program: Program, tmp_path: Path) -> None:
    asked = request(tmp_path, program("echo x"))
    (tmp_path / "logs").mkdir()
    Path(asked.log).symlink_to(tmp_path / "elsewhere")

    with refuses("not-detached"):
        spawn_detached(asked)

    assert not (tmp_path / "elsewhere").exists()


def test_child_that_was_let_go_is_not_warned_of(program: Program, tmp_path: Path) -> None:
    child = spawn_detached(request(tmp_path, program("exec sleep 60")))

    assert child.find_status() is None
    child.let_go()

    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)


def test_parent_that_lives_on_keeps_no_zombie_but_the_newest(
    program: Program, lives: Lives, tmp_path: Path
) -> None:
    # A library may start drivers for weeks.
    ended = spawn_detached(request(tmp_path, program("read -r line; exit 7")))
    endless = spawn_detached(request(tmp_path, program("exec sleep 60")))
    endless.let_go()
    _LET_GO.append(ended.pid)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)

    assert finished(request(tmp_path, program("exit 3")))[0] == 3

    assert lives(endless.pid)
    assert endless.pid in _LET_GO
    assert ended.pid not in _LET_GO
    with pytest.raises(ChildProcessError):
        os.waitpid(ended.pid, os.WNOHANG)
    ended.let_go()
    os.kill(endless.pid, signal.SIGKILL)
    os.waitpid(endless.pid, 0)
    # A process that was reaped elsewhere is forgotten.
    finished(request(tmp_path, program("exit 0")))
    assert endless.pid not in _LET_GO
