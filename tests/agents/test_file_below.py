import os
from pathlib import Path

import pytest

from uwf_git.agents.files import BadFileBelow, read_below, remove_below


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not for you")
    return root


def read(root: Path, path: str, *, follows: bool = False) -> bytes | None:
    return read_below(str(root), path, most_bytes=10, follows_links=follows)


def problem(root: Path, path: str, *, follows: bool = False) -> str:
    with pytest.raises(BadFileBelow) as caught:
        read(root, path, follows=follows)
    return caught.value.problem


def test_file_is_read_and_removed_with_its_folder_made(root: Path) -> None:
    assert read(root, "a/b.json") is None
    remove_below(str(root), "a/b.json")
    (root / "a" / "b.json").write_text("{}")
    assert read(root, "a/b.json") == b"{}"
    remove_below(str(root), "a/b.json")
    assert os.listdir(root / "a") == []


@pytest.mark.parametrize("follows", [False, True])
def test_what_lies_outside_is_neither_read_nor_removed(root: Path, follows: bool) -> None:  # noqa: FBT001 (the value tested)
    (root / "folder").symlink_to("../outside")
    (root / "file").symlink_to("../outside/secret")
    for path in ("folder/secret", "../outside/secret", str(root.parent / "outside" / "secret")):
        assert problem(root, path, follows=follows)
        with pytest.raises(BadFileBelow):
            remove_below(str(root), path)
    assert problem(root, "file", follows=follows) in {
        "is a link",
        "leads out of the work directory",
    }
    remove_below(str(root), "file")
    assert not (root / "file").is_symlink()
    assert (root.parent / "outside" / "secret").read_text() == "not for you"


def test_link_within_the_folder_is_followed_where_that_is_wanted(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a").write_text("words")
    (root / "way").symlink_to("real")
    (root / "last").symlink_to("real/a")
    assert read(root, "way/a") == b"words"
    assert problem(root, "last") == "is a link"
    assert read(root, "last", follows=True) == b"words"


def test_git_is_not_reached_by_a_link(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "innocent").symlink_to(".git")
    with pytest.raises(BadFileBelow, match="git's own"):
        remove_below(str(root), "innocent/config")
    assert (root / ".git" / "config").exists()


def test_other_kinds_of_files_are_refused(root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "large").write_text("x" * 11)
    (root / "loop").symlink_to("loop")
    assert problem(root, "folder") == "is no ordinary file"
    assert problem(root, "pipe") == "is no ordinary file"
    assert problem(root, "large").startswith("is larger than")
    assert problem(root, "loop") == "is a link"
    assert "cannot be used" in problem(root, "large/inner")
    with pytest.raises(BadFileBelow, match="is a directory"):
        remove_below(str(root), "folder")
