import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agents.conftest import Lives, WaitFor

from uwf_git.agents.group import stop_group

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path, wait_for: WaitFor) -> Start:
    """Start a shell that leads a group, and wait until it has written the file ready."""

    def spawn(script: str) -> "subprocess.Popen[bytes]":
        command = ["/bin/sh", "-c", script]
        leader = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        wait_for(tmp_path / "ready")
        return leader

    return spawn


def test_obedient_group_ends_by_the_request(start: Start) -> None:
    leader = start("sleep 60 & echo x >ready; wait")

    stop_group(leader, grace_s=60)

    assert leader.returncode == -signal.SIGTERM


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


def test_group_that_has_ended_is_left_alone(start: Start) -> None:
    leader = start("echo x >ready")
    leader.wait()

    stop_group(leader, grace_s=60)

    assert leader.returncode == 0


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
