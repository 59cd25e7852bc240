"""The work folder has no way out."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.tools import WorkFolder, open_work_folder
from uwf_git.errors import Refused
from uwf_git.store.store import create_store


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    inside = tmp_path / "work"
    (inside / "src").mkdir(parents=True)
    (inside / "src" / "a.txt").write_text("a\n")
    (tmp_path / "secret").write_text("geheim\n")
    return open_work_folder(str(inside))


def read(folder: WorkFolder, path: str) -> bytes:
    with open(folder.open_file(path), "rb") as file:
        return file.read()


def outside(folder: WorkFolder) -> Path:
    return Path(folder.root).parent / "secret"


@pytest.mark.parametrize("path", ["src/a.txt", "./src//a.txt", "src/../src/a.txt", "{}/src/a.txt"])
def test_a_file_inside_is_found_however_it_is_named(folder: WorkFolder, path: str) -> None:
    assert read(folder, path.format(folder.root)) == b"a\n"


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "src/../../secret",
        "/etc/passwd",
        "{}/../secret",
        "{}x/secret",
        "/proc/self/environ",
        "/proc/self/cwd/src/a.txt",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        "",
        " ",
        "src/a.txt\0",
        "~/../../../etc/passwd",
    ],
)
def test_nothing_outside_is_read_or_written(folder: WorkFolder, path: str) -> None:
    named = path.format(folder.root)
    with pytest.raises(Refused):
        folder.open_file(named)
    with pytest.raises(Refused):
        folder.replace(named, b"mine")
    assert outside(folder).read_text() == "geheim\n"


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "/proc/self/environ", "../new"])
def test_a_link_that_leads_outside_is_not_followed(folder: WorkFolder, target: str) -> None:
    Path(folder.root, "link").symlink_to(target)
    with pytest.raises(Refused, match="is not in the work directory"):
        folder.open_file("link")
    with pytest.raises(Refused, match="is not in the work directory"):
        folder.replace("link", b"mine")
    assert outside(folder).read_text() == "geheim\n"
    assert not outside(folder).with_name("new").exists()


def test_a_linked_folder_that_leads_outside_is_not_followed(folder: WorkFolder) -> None:
    Path(folder.root, "up").symlink_to("..")
    for path in ("up/secret", "up/new/deep", "up"):
        with pytest.raises(Refused):
            folder.replace(path, b"mine")
    with pytest.raises(Refused):
        folder.list_below("up", depth=1, most=9)
    assert not outside(folder).with_name("new").exists()


def test_a_link_that_is_put_there_meanwhile_is_not_followed(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The resolved path now leads to another file.
    Path(folder.root, "src").rename(Path(folder.root, "old"))
    Path(folder.root, "src").symlink_to("..")
    monkeypatch.setattr(os.path, "realpath", os.path.normpath)
    for path in ("src/secret", "src/new"):
        with pytest.raises(OSError, match=r"src"):
            folder.open_file(path)
        with pytest.raises(OSError, match=r"src"):
            folder.replace(path, b"mine")
    assert outside(folder).read_text() == "geheim\n"


@given(st.lists(st.sampled_from(["..", ".", "src", "a.txt", "up", "/", "", "…"]), max_size=8))
def test_no_path_leads_outside(parts: list[str]) -> None:
    with made_folder() as (folder, top):
        path = "/".join(parts)
        try:
            found = folder.locate(path)
        except Refused:
            return
        real = os.path.realpath(os.path.join(folder.root, *found))
        assert real == folder.root or real.startswith(folder.root + "/")
        assert top != real


@contextmanager
def made_folder() -> Iterator[tuple[WorkFolder, str]]:
    top = os.path.join(os.environ["HOME"], "made")
    inside = os.path.join(top, "work")
    os.makedirs(os.path.join(inside, "src"), exist_ok=True)
    if not os.path.islink(os.path.join(inside, "up")):
        os.symlink("..", os.path.join(inside, "up"))
    yield open_work_folder(inside), top


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".git"]
)
def test_what_is_gits_is_not_written(folder: WorkFolder, path: str) -> None:
    with pytest.raises(Refused, match="git's own"):
        folder.replace(path, b"#!/bin/sh\n")
    assert folder.replace(".gitignore", b"x\n")


@pytest.mark.parametrize("path", ["lib/config", "lib/hooks/new/x", "link/config", "up/lib/HEAD"])
def test_a_git_directory_of_any_name_is_not_written(folder: WorkFolder, path: str) -> None:
    """It may be a store, whose config says what runs."""
    Path(folder.root, "lib", "objects").mkdir(parents=True)
    Path(folder.root, "lib", "HEAD").write_text("ref: refs/heads/main\n")
    Path(folder.root, "link").symlink_to("lib")
    Path(folder.root, "up").symlink_to("../work")

    with pytest.raises(Refused, match="git's own"):
        folder.replace(path, b"[uwf]\n")
    assert sorted(os.listdir(Path(folder.root, "lib"))) == ["HEAD", "objects"]
    assert folder.replace("library/config", b"x\n")


@pytest.mark.parametrize("below", [".", "refs", "refs/heads"])
def test_a_work_folder_in_a_git_directory_is_not_written(tmp_path: Path, below: str) -> None:
    place = Path(create_store(str(tmp_path / "store.git")).path, below)
    with pytest.raises(Refused, match="git's own"):
        open_work_folder(str(place)).replace("config", b"[uwf]\n")


def test_what_is_kept_is_not_written(folder: WorkFolder, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to("work")
    kept = open_work_folder(
        folder.root, kept=[f"{tmp_path}/alias/state", f"{folder.root}/.gitconfig"]
    )

    for path in ("state/uwf/trust", "state", ".gitconfig"):
        with pytest.raises(Refused, match="git's own"):
            kept.replace(path, b"x\n")
    assert kept.replace("statement", b"x\n")


def test_a_new_file_gets_its_folders_and_an_old_one_keeps_its_mode(folder: WorkFolder) -> None:
    assert folder.replace("new/deep/run.sh", b"one")
    script = Path(folder.root, "new/deep/run.sh")
    script.chmod(0o750)
    assert not folder.replace("new/deep/run.sh", b"two")
    assert script.read_bytes() == b"two"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert os.listdir(script.parent) == ["run.sh"]


def test_a_pipe_and_a_folder_are_no_files(folder: WorkFolder) -> None:
    os.mkfifo(Path(folder.root, "pipe"))
    with pytest.raises(OSError, match="not a regular file"):
        folder.open_file("pipe")
    with pytest.raises(Refused, match="no ordinary file"):
        folder.replace("pipe", b"x")
    for path in ("src", "."):
        with pytest.raises(Refused, match="a directory"):
            folder.open_file(path)
        with pytest.raises(Refused, match="a directory"):
            folder.replace(path, b"x")


def test_a_file_where_a_folder_is_needed_is_an_error(folder: WorkFolder) -> None:
    with pytest.raises(NotADirectoryError):
        folder.replace("src/a.txt/b", b"x")
    with pytest.raises(FileNotFoundError):
        folder.open_file("nothing")


def test_files_are_listed_with_their_kinds_down_to_a_depth(folder: WorkFolder) -> None:
    Path(folder.root, "link").symlink_to("/etc")
    Path(folder.root, ".git").mkdir()
    Path(folder.root, ".git", "config").write_text("")
    Path(folder.root, "src", "deep").mkdir()
    Path(folder.root, "src", "deep", "b").write_text("")
    names = [".git/", "link@", "src/", "src/a.txt", "src/deep/"]
    assert folder.list_below(".", depth=2, most=99) == (names, True)
    assert folder.list_below("src", depth=9, most=99) == (["a.txt", "deep/", "deep/b"], True)
    assert folder.list_below(".", depth=2, most=3) == (names[:3], False)
