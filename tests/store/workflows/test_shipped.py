import tomllib
from pathlib import Path

import pytest

from uwf_git.store.workflows import find_shipped, is_shipped_agent, list_shipped

ROOT = Path(__file__).parents[3]


def test_every_shipped_file_is_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["uwf_git"]
    packaged = {path for pattern in patterns for path in (ROOT / "uwf_git").glob(pattern)}
    assert {Path(file.path) for file in list_shipped()} <= packaged
    assert {"check-repo", "develop"} <= {file.name for file in list_shipped()}


def test_folder_of_the_checkout_is_the_one_of_the_package() -> None:
    assert [str(path.resolve()) for path in sorted((ROOT / "workflows").glob("*"))] == [
        file.path for file in list_shipped()
    ]


@pytest.mark.parametrize("name", ["", "nope", "../workflows/develop", "check-repo.yaml", "*"])
def test_other_names_are_not_shipped(name: str) -> None:
    assert find_shipped(name) is None
    assert not is_shipped_agent(name, {"command": "x"})


def test_only_the_agents_of_that_file_are_shipped_ones() -> None:
    file = find_shipped("check-repo")
    assert file is not None
    source = Path(file.path).read_text()
    block = source.partition("  leftovers: |-\n")[2].partition("\n\n  verdict:")[0]
    command = "\n".join(line[4:] for line in block.split("\n"))
    assert is_shipped_agent("check-repo", {"command": command})
    assert not is_shipped_agent("develop", {"command": command})
    assert not is_shipped_agent("check-repo", {"command": command + " "})
    assert not is_shipped_agent("check-repo", {"command": command, "env": {"PATH": "evil"}})
