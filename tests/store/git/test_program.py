import os
import time
from pathlib import Path

import pytest

from uwf_git.store.git.program import (
    ProgramFailed,
    Ran,
    run_listener,
    run_program,
    set_user_config,
)

ENVIRON = {"PATH": os.defpath}


def test_program_is_given_its_input_and_gives_all_it_says() -> None:
    ran = run_program(["/bin/sh", "-c", "cat; echo no >&2; exit 3"], ENVIRON, given=b"yes")
    assert (ran.status, ran.stdout, ran.stderr) == (3, b"yes", b"no\n")


def test_program_sees_only_the_environment_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    assert run_program(["/bin/sh", "-c", 'printf "%s" "$SECRET"'], ENVIRON).stdout == b""


def test_program_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(ProgramFailed, match=r"sleep was killed after 0\.1 s"):
        run_program(["sleep", "60"], ENVIRON, timeout_s=0.1)
    assert time.monotonic() - began < 30


def listen(script: str, *, cwd: Path, timeout_s: float = 30) -> Ran:
    argv = ["/bin/sh", "-c", script]
    return run_listener(argv, ENVIRON, given=b"told\n", cwd=str(cwd), timeout_s=timeout_s)


def test_background_child_of_a_listener_does_not_delay_the_return(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = listen(f"sleep 60 & echo $! >{tmp_path}/pid", cwd=tmp_path)
    assert time.monotonic() - began < 30
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert ran.status == 0


def test_listener_that_takes_too_long_is_ended_with_all_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"sh was killed after 0\.3 s"):
        listen(f"sleep 60 & echo $! >{tmp_path}/pid; wait", cwd=tmp_path, timeout_s=0.3)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}/fd/0"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_failure_of_git_config_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("[broken\n")
    with pytest.raises(ProgramFailed, match="git config --global"):
        set_user_config({**os.environ, "GIT_CONFIG_GLOBAL": str(broken)}, "uwf.agent", "x")
    assert broken.read_text() == "[broken\n"


def test_missing_git_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="not on the PATH"):
        set_user_config({"PATH": str(tmp_path), "HOME": str(tmp_path)}, "uwf.agent", "x")
