"""The agents of a project are found from all of its folders."""

from pathlib import Path

import pytest

from uwf_git.surroundings import find_above


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
