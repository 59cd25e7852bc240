"""Cancelling the work of another thread of Python."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from agents.conftest import Lives, Program, WaitFor
from refusing import refuses

from uwf_git.agents.group import _LET_GO, DetachRequest, spawn_detached, stop_group, wait_for_one

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path, wait_for: WaitFor) -> Start:
    """Start a shell that leads a group, and wait until it has written the file ready."""

    def spawn(script: str) -> "subprocess.Popen[bytes]":
        leader = subprocess.Popen(["/bin/sh", "-c", script], cwd=tmp_path, start_new_session=True)
        wait_for(tmp_path / "ready")
        return leader

    return spawn


def test_member_that_outlives_its_leader_gets_its_grace(
    start: Start, tmp_path: Path, lives: Lives
) -> None:
    late = "trap 'echo late >late; exit' TERM; echo x >ready; while :; do sleep 0.05; done"
    leader = start(f"({late}) & echo $! >pid; trap - TERM; wait")

    stop_group(leader, grace_s=60)

    assert (tmp_path / "late").read_text() == "late\n"
    assert not lives(int((tmp_path / "pid").read_text()))


def test_stubborn_group_is_killed(start: Start, tmp_path: Path, lives: Lives) -> None:
    leader = start("trap '' TERM; (while :; do sleep 60; done) & echo $! >pid; echo x >ready; wait")

    stop_group(leader, grace_s=0.1)

    assert leader.returncode == -signal.SIGKILL
    assert not lives(int((tmp_path / "pid").read_text()))


def test_interrupt_kills_at_once_and_is_passed_on(start: Start) -> None:
    leader = start("trap '' TERM; echo x >ready; while :; do sleep 60; done")
    started = time.monotonic()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)

    try:
        with pytest.raises(KeyboardInterrupt):
            stop_group(leader, grace_s=60)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert leader.returncode == -signal.SIGKILL
    assert time.monotonic() - started < 10


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")
def test_unreaped_orphans_do_not_count() -> None:
    # The child stays a zombie of this process, in the group of a leader that has been reaped.
    leader = subprocess.Popen(["/bin/sleep", "60"], process_group=0)
    child = subprocess.Popen(["/bin/sleep", "60"], process_group=leader.pid)
    os.kill(child.pid, signal.SIGKILL)
    started = time.monotonic()

    stop_group(leader, grace_s=60)

    assert time.monotonic() - started < 10
    assert child.wait() == -signal.SIGKILL


LEAVING = """\
import os, sys
from uwf_git.agents.group import leave_group

descriptor, group = int(sys.argv[2]), os.getpgrp()
leave_group(os.getpid() + 1, sys.argv[1])
assert os.getpgrp() == group
leave_group(group, sys.argv[1])
is_out = os.getpgrp() != group
try:
    os.fstat(descriptor)
except OSError:
    print(is_out, "closed")
else:
    print(is_out, "open")
"""


@pytest.mark.parametrize(("is_leader", "said"), [(False, "True closed"), (True, "False open")])
def test_member_leaves_its_group_without_the_lock_but_not_its_leader(
    is_leader: bool,  # noqa: FBT001 (pytest passes it so)
    said: str,
    tmp_path: Path,
) -> None:
    with open(tmp_path / "lock", "w") as lock:
        words = [sys.executable, "-c", LEAVING, str(tmp_path / "lock"), str(lock.fileno())]
        child = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=True,
            start_new_session=is_leader,
            pass_fds=(lock.fileno(),),
        )

    assert child.stdout.strip() == said


def test_ctrl_c_that_another_thread_of_python_receives_ends_a_wait() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    never: Future[None] = Future()

    def receive() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    other = threading.Timer(0.05, receive)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_one([never])
    finally:
        signal.signal(signal.SIGINT, before)
        other.join()


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


@pytest.mark.parametrize("put", [Path.touch, os.mkfifo])
def test_log_of_another_user_is_begun_anew(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    asked = request(tmp_path, program("echo mine"))
    Path(asked.log).parent.mkdir()
    put(Path(asked.log))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert finished(asked)[1] == "mine\n"
    assert Path(asked.log).stat().st_mode & 0o777 == 0o600


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
