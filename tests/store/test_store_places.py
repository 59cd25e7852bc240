"""Odd places for a store, and files that mean to mislead."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses
from store.conftest import Git
from store.story import Story

from uwf_git.store.git.config import set_config
from uwf_git.store.store import NotAStore, Store, create_store, find_git_dir, open_store


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a work tree with one commit."""
    path = tmp_path / "my project"
    git("init", "--quiet", path, cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=path)
    return path


def refused(path: Path) -> str:
    """Try to open *path*, and return how it is refused."""
    assert find_git_dir(str(path)) is None
    with pytest.raises(NotAStore) as caught:
        open_store(str(path))
    return caught.value.message


LEADS_NOWHERE = [b"", b"gitdir: ", b"gitdir: .", b"gitdir: missing", b"hello", b"gitdir: \xff\xfe"]


@pytest.mark.parametrize("content", LEADS_NOWHERE, ids=repr)
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert refused(tmp_path) == f"{tmp_path} is not a git repository"
    assert refused(tmp_path / ".git") == f"{tmp_path}/.git is not a git repository"


@pytest.mark.parametrize("missing", ["HEAD", "objects"])
def test_half_a_repository_is_none(tmp_path: Path, missing: str) -> None:
    create_store(str(tmp_path / "store.git"))
    (tmp_path / "store.git" / missing).rename(tmp_path / "elsewhere")
    assert refused(tmp_path / "store.git").endswith("HEAD is missing") == (missing == "HEAD")


def test_the_hint_for_a_missing_head_makes_it_and_changes_nothing_else(
    project: Path, git: Git
) -> None:
    (project / ".git" / "HEAD").unlink()
    with pytest.raises(NotAStore) as caught:
        open_store(str(project / ".git"))
    subprocess.run(["sh", "-c", str(caught.value.hint).partition(": ")[2]], check=True)
    assert git("rev-parse", "--is-bare-repository", cwd=project) == "false\n"


def test_a_user_cannot_make_a_repository_another_kind(store: Store, tmp_path: Path) -> None:
    environ = {"GIT_CONFIG_GLOBAL": str(tmp_path / "mine"), "GIT_CONFIG_NOSYSTEM": "1"}
    set_config(environ["GIT_CONFIG_GLOBAL"], "extensions.objectFormat", "sha256")
    assert open_store(store.path, environ=environ).path == store.path


def test_a_whole_thread_touches_nothing_of_the_project(
    project: Path, git: Git, clock: Callable[[], int]
) -> None:
    (project / "file").write_text("changed")
    git("add", "file", cwd=project)
    untouched = [project / ".git" / name for name in ("HEAD", "index", "config", "logs/HEAD")]

    def look() -> list[object]:
        told = [git("status", "--porcelain", cwd=project), git("branch", "-av", cwd=project)]
        return [*told, sorted(os.listdir(project)), *[path.read_bytes() for path in untouched]]

    before = look()
    story = Story(open_store(str(project)), clock)
    story.step()
    story.end()
    assert look() == before


@pytest.mark.parametrize("content", ["nowhere\n", "\0\n", "x\0y\n"])
def test_a_folder_with_a_commondir_that_leads_nowhere_is_no_repository(
    tmp_path: Path, content: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "commondir").write_text(content)
    assert refused(place)


def test_a_commondir_leads_out_of_no_repository(tmp_path: Path, git: Git) -> None:
    """A file in a checkout must not say which store is used."""
    git("init", "--quiet", "--bare", "mine.git", cwd=tmp_path)
    for place in (tmp_path / "place", tmp_path / "tree" / ".git", tmp_path / "worktrees" / "x"):
        place.mkdir(parents=True)
        (place / "HEAD").write_text("ref: refs/heads/main\n")
        (place / "commondir").write_text(f"{tmp_path}/mine.git\n")
        assert refused(place)
    assert refused(tmp_path / "tree")


def test_a_whole_repository_with_a_commondir_is_refused(tmp_path: Path, git: Git) -> None:
    """git would use the refs and objects of the other one."""
    git("init", "--quiet", "--bare", "mine.git", cwd=tmp_path)
    git("init", "--quiet", "tree", cwd=tmp_path)
    (tmp_path / "tree" / ".git" / "commondir").write_text("../../mine.git\n")

    with refuses("unsupported-repository", match="commondir"):
        open_store(str(tmp_path / "tree"))


def test_packed_refs_of_another_repository_are_refused(store: Store, tmp_path: Path) -> None:
    """As `git-new-workdir` links them: git writes the file behind the link."""
    Path(store.path, "packed-refs").symlink_to(tmp_path / "packed-refs")

    with refuses("unsupported-repository", match="a link as packed-refs"):
        open_store(store.path)
