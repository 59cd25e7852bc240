import os
import pwd
from pathlib import Path

import pytest

from uwf_git.store.durable import find_user_file


def test_link_to_a_store_means_that_store(tmp_path: Path) -> None:
    (tmp_path / "store.git").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store.git")
    environ = {"HOME": "/home/me"}
    there = find_user_file(f"{tmp_path}/store.git", environ, "trust")
    assert find_user_file(f"{tmp_path}/link", environ, "trust") == there
    assert str(there).startswith("/home/me/.local/state/uwf/stores/")


@pytest.mark.parametrize("state", ["", "relative/path"])
def test_state_home_that_is_not_absolute_is_ignored(state: str) -> None:
    found = find_user_file("/s.git", {"HOME": "/h", "XDG_STATE_HOME": state}, "trust")
    assert str(found).startswith("/h/.local/state/")


def test_files_lie_in_the_state_home_else_in_that_of_the_account() -> None:
    mine = pwd.getpwuid(os.geteuid()).pw_dir
    for environ, state in [
        ({"HOME": "/h", "XDG_STATE_HOME": "/state"}, "/state"),
        ({}, f"{mine}/.local/state"),
        ({"HOME": "relative"}, f"{mine}/.local/state"),
    ]:
        found = str(find_user_file("/s.git", environ, "trust"))
        assert found.startswith(f"{state}/uwf/stores/")
