"""Odd places for a store, and files that mean to mislead."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses
from store.conftest import Git
from store.story import THREAD, Story

from uwf_git.store.git.config import BadConfig, set_config
from uwf_git.store.store import NotAStore, Store, create_store, find_git_dir, open_store


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a work tree with one commit."""
    path = tmp_path / "project"
    git("init", "--quiet", path, cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=path)
    return path


def refused(path: Path) -> str:
    """Try to open *path*, and return how it is refused."""
    assert find_git_dir(str(path)) is None
    with pytest.raises(NotAStore) as caught:
        open_store(str(path))
    return caught.value.message


def test_a_git_file_is_followed(tmp_path: Path, git: Git) -> None:
    git("init", "--quiet", "--separate-git-dir", "kept here", "tree", cwd=tmp_path)
    for path in ("tree", "tree/.git"):
        assert open_store(str(tmp_path / path)).path == str(tmp_path / "kept here")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_git_file_means_a_place_beside_itself_wherever_we_stand(
    tmp_path: Path, git: Git, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "--quiet", "--bare", "a/x.git", cwd=tmp_path)
    (tmp_path / "a" / "tree").mkdir()
    (tmp_path / "a" / "tree" / ".git").write_bytes(f"gitdir: ../x.git{end}".encode())
    monkeypatch.chdir(tmp_path)
    assert open_store("a/tree").path == str(tmp_path / "a" / "x.git")


def test_what_one_worktree_starts_all_have(
    project: Path, tmp_path: Path, git: Git, clock: Callable[[], int]
) -> None:
    git("worktree", "add", "--quiet", tmp_path / "tree", cwd=project)
    story = Story(open_store(str(tmp_path / "tree")), clock)
    assert open_store(str(project)).refs.find(f"refs/threads/{THREAD}") == story.head.commit
    told = git("rev-parse", f"refs/threads/{THREAD}", cwd=tmp_path / "tree")
    assert told == f"{story.head.commit}\n"


def test_a_worktree_of_a_bare_repository_is_that_repository(
    tmp_path: Path, project: Path, git: Git
) -> None:
    git("clone", "--quiet", "--bare", project, "bare.git", cwd=tmp_path)
    git("worktree", "add", "--quiet", tmp_path / "tree", cwd=tmp_path / "bare.git")
    assert os.path.samefile(open_store(str(tmp_path / "tree")).path, tmp_path / "bare.git")


def test_a_store_stays_where_it_was_opened(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, clock: Callable[[], int]
) -> None:
    monkeypatch.chdir(project)
    store = open_store(".")
    monkeypatch.chdir(tmp_path)
    head = Story(store, clock).head
    assert store.path == str(project / ".git")
    assert open_store(str(project)).refs.find(f"refs/threads/{THREAD}") == head.commit


@pytest.mark.parametrize("name", ["with space ", "ümläut-日本", "new\nline", "-rf", "'\"$x"])
def test_any_name_of_a_folder_will_do(
    tmp_path: Path, git: Git, name: str, clock: Callable[[], int]
) -> None:
    path = tmp_path / name
    head = Story(create_store(str(path)), clock).head
    assert git("rev-parse", f"refs/threads/{THREAD}", cwd=path) == f"{head.commit}\n"


LEADS_NOWHERE = [b"", b"gitdir: ", b"gitdir: .", b"gitdir: missing", b"hello", b"gitdir: \xff\xfe"]


@pytest.mark.parametrize("content", LEADS_NOWHERE, ids=repr)
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert refused(tmp_path) == f"{tmp_path} is not a git repository"
    assert refused(tmp_path / ".git") == f"{tmp_path}/.git is not a git repository"


def test_links_in_a_circle_are_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("loop")
    (tmp_path / "loop").symlink_to(".git")
    assert refused(tmp_path / "loop") == f"{tmp_path}/loop is not a git repository"


@pytest.mark.parametrize("missing", ["HEAD", "objects"])
def test_half_a_repository_is_none(tmp_path: Path, missing: str) -> None:
    create_store(str(tmp_path / "store.git"))
    (tmp_path / "store.git" / missing).rename(tmp_path / "elsewhere")
    refused(tmp_path / "store.git")


GARBAGE = [b"[core\n", b"= 1\n", b"[core] = 1\n", b"\0", b'[a "b]\n', b'[a]\nb = "c\n']


@pytest.mark.parametrize("content", GARBAGE, ids=repr)
def test_invalid_config_is_named(project: Path, git: Git, content: bytes) -> None:
    path = project / ".git" / "config"
    path.write_bytes(content)
    with pytest.raises(BadConfig) as caught:
        open_store(str(project))
    assert caught.value.message.startswith(f"{path} is not a git config file: line ")


def test_a_repository_without_a_config_has_no_settings(store: Store) -> None:
    Path(store.path, "config").unlink()
    assert open_store(store.path).config.values == {}


def test_a_user_cannot_make_a_repository_another_kind(store: Store, tmp_path: Path) -> None:
    environ = {"GIT_CONFIG_GLOBAL": str(tmp_path / "mine"), "GIT_CONFIG_NOSYSTEM": "1"}
    set_config(environ["GIT_CONFIG_GLOBAL"], "extensions.objectFormat", "sha256")
    assert open_store(store.path, environ=environ).path == store.path


def test_where_a_file_is_no_store_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(OSError, match="file"):
        create_store(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "hello"


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


def test_a_git_file_with_a_nul_is_no_repository(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / ".git").write_bytes(b"gitdir: x\0y\n")
    assert refused(place)


def test_a_separate_git_dir_may_end_in_a_blank(tmp_path: Path, git: Git) -> None:
    git("init", "--quiet", "--separate-git-dir", "kept ", "tree", cwd=tmp_path)
    assert open_store(str(tmp_path / "tree")).path == str(tmp_path / "kept ")
