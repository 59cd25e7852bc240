import os
import subprocess
import sys
from pathlib import Path

import pytest

from uwf_git.surroundings import (
    LOCAL_VARIABLES,
    UNSET_LOCAL_VARIABLES,
    find_above,
    speak_utf8,
    without_local_variables,
)


def test_every_local_variable_of_the_installed_git_is_known() -> None:
    told = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, check=True)

    assert set(told.stdout.decode().split()) <= LOCAL_VARIABLES


def test_local_variables_are_left_out_and_all_others_kept() -> None:
    kept = {"PATH": "/bin", "GIT_SSH_COMMAND": "ssh", "GIT_COMMITTER_NAME": "Ada"}
    local = {"GIT_DIR": "/a", "GIT_OBJECT_DIRECTORY": "/b", "GIT_NAMESPACE": "c"}

    assert without_local_variables({**kept, **local}) == kept


def test_settings_of_the_environment_are_kept_where_they_are_asked_for() -> None:
    settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_PARAMETERS": "'a.b=c'"}

    assert without_local_variables(settings) == {}
    assert without_local_variables({**settings, "GIT_DIR": "/"}, keep_settings=True) == settings


def test_a_shell_can_leave_them_out_as_well() -> None:
    environ = {"GIT_DIR": "/a", "KEPT": "b", "PATH": os.defpath}
    argv = ["sh", "-c", f"{UNSET_LOCAL_VARIABLES}; env"]
    ran = subprocess.run(argv, env=environ, capture_output=True, check=True)

    assert b"KEPT=b\n" in ran.stdout
    assert b"GIT_" not in ran.stdout
    assert ran.stderr == b""


# The agents of a project are found from all of its folders.


def test_files_of_the_project_are_found_from_its_folders(tmp_path: Path) -> None:
    for folder in (".git", ".workflows", "agents", "deep/er/agents"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "agents/all").touch()
    (tmp_path / "deep/er/agents/own").touch()
    words = (
        "agents/all",
        "agents/own",
        "agents/none",
        "agents",
        "-f/x",
        "/bin/sh",
        "all",
        "a/" * 3000,
    )

    found = find_above(words, workdir=str(tmp_path / "deep/er"))

    assert found == (str(tmp_path / "agents/all"), *words[1:])
    assert find_above(words, workdir=str(tmp_path)) == words


@pytest.mark.parametrize("made", [(".git",), (".workflows",), (".workflows", "deep/.git")])
def test_only_a_project_with_workflows_has_files_above(
    made: tuple[str, ...], tmp_path: Path
) -> None:
    for folder in (*made, "agents", "deep/er"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "agents/all").touch()

    assert find_above(("agents/all",), workdir=str(tmp_path / "deep/er")) == ("agents/all",)


@pytest.mark.parametrize("unseen", [[], ["unseen"]])
def test_words_are_passed_on_as_the_system_has_them(
    monkeypatch: pytest.MonkeyPatch, unseen: list[str]
) -> None:
    """Of EUC-JP, for one, Python's codec does not give back what the C library has read."""
    monkeypatch.setattr(sys, "orig_argv", [*sys.orig_argv, *unseen])
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "euc_jp")
    started: list[str | bytes] = []
    monkeypatch.setattr(os, "execv", lambda _program, words: started.extend(words))
    speak_utf8()
    expected = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
    assert [*map(os.fsencode, started)] == [*map(os.fsencode, expected)]
    # A caller may have called this program something else.
    monkeypatch.setattr(sys, "executable", "")
    speak_utf8()
    assert len(started) == len(expected)
