import os
from pathlib import Path

import pytest

from uwf_git.store.disk.durable import find_user_file


def test_each_store_has_a_folder_of_its_own(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": "/state"}
    found = {find_user_file(f"{tmp_path}/{name}", environ, "trust") for name in ("a", "b")}
    assert len(found) == 2
    assert all(str(path).startswith("/state/uwf/stores/") for path in found)


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


def test_without_home_the_one_of_the_password_database_counts() -> None:
    pwd = pytest.importorskip("pwd")
    home = pwd.getpwuid(os.geteuid()).pw_dir
    assert str(find_user_file("/s.git", {}, "trust")).startswith(f"{home}/.local/state/")
