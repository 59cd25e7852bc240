import os
from pathlib import Path

import pytest
from store.conftest import Git

from uwf_git.store.git.program import ProgramFailed, set_user_config
from uwf_git.store.git.scopes import read_user_config


def test_setting_of_the_user_is_where_git_and_we_find_it(git: Git, tmp_path: Path) -> None:
    value = "uwf-cli 'a \"b\" # c'"
    set_user_config(os.environ, "uwf.agent", "first")
    set_user_config(os.environ, "uwf.agent", value)

    assert git("config", "--global", "uwf.agent", cwd=tmp_path) == f"{value}\n"
    assert read_user_config(os.environ).get_all("uwf.agent") == [value]


def test_failure_of_git_config_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("[broken\n")
    with pytest.raises(ProgramFailed, match="git config --global"):
        set_user_config({**os.environ, "GIT_CONFIG_GLOBAL": str(broken)}, "uwf.agent", "x")
    assert broken.read_text() == "[broken\n"


def test_missing_git_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="not on the PATH"):
        set_user_config({"PATH": str(tmp_path), "HOME": str(tmp_path)}, "uwf.agent", "x")
