import os
from pathlib import Path

import pytest

from uwf_git.store.program import ProgramFailed, find_program, run_program

ENVIRON = {"PATH": os.defpath}


def test_program_is_given_its_input_and_gives_all_it_says() -> None:
    ran = run_program(["/bin/sh", "-c", "cat; echo no >&2; exit 3"], ENVIRON, given=b"yes")
    assert (ran.status, ran.stdout, ran.stderr) == (3, b"yes", b"no\n")


def test_program_sees_only_the_environment_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    assert run_program(["/bin/sh", "-c", 'printf "%s" "$SECRET"'], ENVIRON).stdout == b""


def test_last_line_is_the_last_that_says_something() -> None:
    assert run_program(["/bin/sh", "-c", "printf 'a\\nb\\n\\n' >&2"], ENVIRON).last_line == "b"
    assert run_program(["/bin/sh", "-c", "true"], ENVIRON).last_line == ""


def test_missing_program_is_an_error_that_names_it(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ProgramFailed, match="none could not be started"):
        run_program([missing], ENVIRON)


def test_program_is_found_on_the_path_that_is_given(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    assert find_program("tool", {"PATH": str(tmp_path)}) is None
    program.chmod(0o755)
    assert find_program("tool", {"PATH": str(tmp_path)}) == str(program)
    assert find_program(str(program), {}) == str(program)
    assert find_program("tool", {"PATH": ""}) is None
