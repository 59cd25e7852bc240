import os
import shlex
from pathlib import Path

import pytest
from agents.conftest import Program
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.command_line import (
    BadCommand,
    ProgramMissing,
    build_argv,
    resolve_program,
    split_command,
)

THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"

NO_WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(NO_WORD, min_size=1).filter(lambda words: bool(words[0])))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split_command(shlex.join(words)) == tuple(words)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("'' x", "it is empty"),
        ("uwf-shell 'make", "no closing quotation"),
        ('uwf-shell "make', "no closing quotation"),
        ("uwf-shell \\", "no escaped character"),
        ("a\0b", "it holds a NUL character"),
        ("a\ud800", "it holds a lone surrogate"),
    ],
)
def test_text_that_is_no_command_is_refused(command: str, problem: str) -> None:
    with pytest.raises(BadCommand, match=problem) as caught:
        split_command(command)

    assert caught.value.exit_status == 1
    assert "\n" not in caught.value.message


def test_flags_name_thread_and_role() -> None:
    argv = build_argv("uwf-x", protocol="flags", thread=THREAD, role="front end")

    assert argv == ("uwf-x", "-t", THREAD, "-r", "front end")


def test_path_of_a_program_is_seen_from_the_work_directory(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(program("true"))

    assert resolve_program(f"./{file.name}", path="", workdir=str(tmp_path)) == str(file)
    assert resolve_program(str(file), path="", workdir="/") == str(file)
    monkeypatch.chdir(tmp_path)
    assert resolve_program(f"./{file.name}", path="", workdir=".") == str(file)
    assert resolve_program(file.name, path="", workdir=".") == str(file)


def test_file_that_is_not_executable_is_reported(program: Program) -> None:
    file = Path(program("true"))
    file.chmod(0o644)

    with pytest.raises(ProgramMissing, match="may not be executed") as caught:
        resolve_program(str(file), path="", workdir="/")
    assert caught.value.hint == f"chmod +x {file}"

    with pytest.raises(ProgramMissing, match="is not on the PATH"):
        resolve_program(file.name, path=str(file.parent), workdir="/")


def test_directory_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="is a directory"):
        resolve_program(str(tmp_path), path="", workdir="/")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("#!/nowhere/bun", "'/nowhere/bun'"),
        ("#! \t/nowhere/bun\t--fast", "'/nowhere/bun'"),
        ("#!/bin/sh\r", r"'/bin/sh\\r'"),
    ],
)
def test_script_whose_interpreter_is_missing_is_reported(
    program: Program, line: str, told: str
) -> None:
    script = program(f"{line}\n")

    with pytest.raises(ProgramMissing, match=f"is a script for {told}, which") as caught:
        resolve_program(script, path="", workdir="/")

    assert "install" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_program_that_cannot_be_read_may_still_run(program: Program) -> None:
    file = Path(program("true"))
    file.chmod(0o111)

    assert resolve_program(str(file), path="", workdir="/") == str(file)
