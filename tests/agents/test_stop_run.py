import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from agents.conftest import Lives, WaitFor

from uwf_git.agents import run_files as module
from uwf_git.agents.run_files import find_group, is_left_behind, stop_run

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="there is no /proc here"
)

HANG = "while :; do sleep 0.05; done"
Run = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def run_dir(tmp_path: Path) -> str:
    path = tmp_path / "run"
    path.mkdir()
    return str(path)


@pytest.fixture
def run(run_dir: str, tmp_path: Path, wait_for: WaitFor) -> Iterator[Run]:
    """Start a shell as an engine does: it leads a group, says its number, and holds the lock."""
    started: list[subprocess.Popen[bytes]] = []

    def spawn(script: str) -> "subprocess.Popen[bytes]":
        with open(run_dir + ".alive", "w") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            command = ["/bin/sh", "-c", f'echo $$ >"{run_dir}/pid"; {script}']
            leader = subprocess.Popen(
                command, cwd=tmp_path, start_new_session=True, pass_fds=(alive.fileno(),)
            )
        started.append(leader)
        wait_for(tmp_path / "ready")
        return leader

    yield spawn
    for leader in started:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()


def alive_of(run_dir: str) -> str:
    return run_dir + ".alive"


def stop(run_dir: str, *, grace_s: float = 30) -> bool:
    return stop_run(run_dir, alive_of(run_dir), grace_s=grace_s, is_held=lambda: True)


def test_stubborn_agent_is_killed_after_the_grace(run: Run, run_dir: str) -> None:
    leader = run(f"trap '' TERM; echo x >ready; {HANG}")
    began = time.monotonic()

    assert stop(run_dir, grace_s=0.2)

    assert leader.wait() == -signal.SIGKILL
    assert 0.2 <= time.monotonic() - began < 10


def test_child_that_has_closed_the_lock_is_ended_as_well(
    run: Run, run_dir: str, tmp_path: Path, lives: Lives
) -> None:
    child = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open('child', 'w').write(str(__import__('os').getpid()));"
        "open('ready', 'w').write('x');"
        "[time.sleep(0.05) for _ in range(10_000)]"
    )
    # Python closes all other descriptors, so only the shell holds the lock.
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]).wait()"
    (tmp_path / "parent.py").write_text(script)
    leader = run(f"'{sys.executable}' parent.py; exit 0")
    pid = int((tmp_path / "child").read_text())

    assert stop(run_dir, grace_s=0.3)

    assert not lives(pid)
    leader.wait()


def is_left(run_dir: str) -> bool:
    return is_left_behind(run_dir, alive_of(run_dir))


def test_lock_is_left_behind_once_a_process_outside_of_the_group_holds_it(
    run: Run, run_dir: str, tmp_path: Path
) -> None:
    daemon = "setsid sh -c 'echo $$ >daemon; echo x >ready; exec sleep 1000'"
    leader = run(f"{daemon} & exec sleep 60")
    assert not is_left(run_dir)

    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()

    assert is_left(run_dir)
    assert not stop(run_dir)
    Path(run_dir, "pid").unlink()
    assert not is_left(run_dir)
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)


def test_process_that_looks_at_a_lock_does_not_hold_it(run_dir: str) -> None:
    Path(run_dir, "pid").write_text("4194304\n")
    assert not is_left(run_dir)

    with open(alive_of(run_dir), "w") as alive:
        assert not is_left(run_dir)
        fcntl.flock(alive, fcntl.LOCK_EX)
        assert is_left(run_dir)


def test_number_that_is_another_s_by_now_is_never_signalled(
    run: Run, run_dir: str, lives: Lives, tmp_path: Path
) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    leader = run(f"echo x >ready; {HANG}")
    Path(run_dir, "pid").write_text(f"{stranger.pid}\n")

    assert find_group(run_dir, alive_of(run_dir)) is None
    assert not stop(run_dir)

    assert lives(stranger.pid)
    assert lives(leader.pid)
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        # What holds the lock after the end is a daemon that the agent left behind.
        ("exit", "0"),
        *(("pid", number) for number in ("", "0", "1", "-1", "x", "99999999999999999999")),
    ],
)
def test_run_that_has_ended_or_has_no_valid_number_is_not_touched(
    name: str, number: str, run: Run, run_dir: str, lives: Lives
) -> None:
    leader = run(f"echo x >ready; {HANG}")
    Path(run_dir, name).write_text(f"{number}\n")

    assert find_group(run_dir, alive_of(run_dir)) is None
    assert not stop(run_dir)
    assert lives(leader.pid)


def test_group_that_is_new_each_time_it_is_looked_at_is_killed(
    run: Run, run_dir: str, tmp_path: Path
) -> None:
    """A child that is always another one: each starts the next, and ends."""
    (tmp_path / "next").write_text(
        "#!/bin/sh\ntrap '' TERM\necho x >ready\n[ -e enough ] || ./next &\n"
    )
    (tmp_path / "next").chmod(0o755)
    run(f"trap '' TERM; ./next; {HANG}")

    assert stop(run_dir, grace_s=0.3)

    # A process that was forked while all were killed may have to be killed again.
    deadline = time.monotonic() + 10
    while stop(run_dir, grace_s=0):
        assert time.monotonic() < deadline
    (tmp_path / "enough").touch()


@pytest.mark.parametrize("is_held", [False, True], ids=["free", "held"])
def test_without_proc_the_lock_decides(
    is_held: bool,  # noqa: FBT001 (pytest passes it so)
    run: Run,
    run_dir: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader = run(f"echo x >ready; {HANG}")
    monkeypatch.setattr(module, "list_members", lambda _group: None)
    monkeypatch.setattr(module, "_has_open", lambda _pid, _lock: False)
    asked: list[bool] = []

    def look() -> bool:
        asked.append(leader.poll() is None)
        return is_held and asked[-1]

    assert find_group(run_dir, alive_of(run_dir)) == leader.pid
    assert stop_run(run_dir, alive_of(run_dir), grace_s=30, is_held=look) == is_held

    assert (leader.poll() is None) != is_held
    assert asked
