from pathlib import Path

import pytest

from uwf_git.agentkit.programs.playing import find_store_pattern, is_below, list_deciding_files


def test_files_that_decide_what_runs_are_listed() -> None:
    environ = {"HOME": "/h", "UWF_REPO": "/w/store.git", "GIT_CONFIG_GLOBAL": "/h/mine"}

    assert list_deciding_files(environ) == [
        "/w/store.git",
        "/h/.local/state/uwf/stores",
        "/h/.gitconfig",
        "/h/.config/git",
        "/h/mine",
    ]
    assert list_deciding_files({}) == []


def test_links_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store")

    assert is_below(f"{tmp_path}/link/new/config", [f"{tmp_path}/store"])
    assert is_below(f"{tmp_path}/store", [f"{tmp_path}/link"])
    assert not is_below(f"{tmp_path}/store.git", [f"{tmp_path}/store"])


@pytest.mark.parametrize(
    ("store", "pattern"),
    [
        ("/w/store.git", "/w/store.git"),
        ("/w/a b(*)/x.git", "/w/a?b???/x.git"),
        ("/w/project/.git", None),
        (None, None),
    ],
)
def test_store_becomes_a_pattern(store: str | None, pattern: str | None) -> None:
    assert find_store_pattern({"UWF_REPO": store} if store else {}) == pattern
