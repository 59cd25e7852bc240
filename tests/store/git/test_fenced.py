"""A git of ours in the repository of a project: what counts there, and what comes back."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from uwf_git.store.durable import find_user_file
from uwf_git.store.git.fenced import (
    Kept,
    Place,
    fenced,
    find_place,
    keep_settings,
    list_uncommitted,
    read_settings,
    run_fenced,
)
from uwf_git.store.git.program import ProgramFailed

Git = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a repository with one commit, and a setting that it includes."""
    place = tmp_path / "project"
    git("init", "--quiet", str(place), cwd=tmp_path)
    (place / "file").write_text("x\n")
    git("add", "--all", cwd=place)
    git("commit", "--quiet", "-m", "x", cwd=place)
    (place / ".git" / "more").write_text('[filter "a.b"]\n\tclean = "say \\"x\\"; y\\\\n"\n')
    git("config", "include.path", "more", cwd=place)
    return place


def config(place: Place, *words: str) -> str:
    return os.fsdecode(run_fenced(os.environ, place, "config", *words).stdout).strip()


def test_settings_that_were_kept_count_for_their_repository_alone(
    project: Path, tmp_path: Path, git: Git
) -> None:
    kept, own = str(tmp_path / "of" / "thread"), str(project / ".git")
    keep_settings(kept, str(project))
    git("config", "include.path", "nowhere", cwd=project)
    git("config", "core.autocrlf", "input", cwd=project)
    git("config", "core.editor", "evil", cwd=project)

    at = Place(own, kept=read_settings(kept))

    assert config(at, "filter.a.b.clean") == 'say "x"; y\\n'
    assert config(at, "core.autocrlf") == "input"
    assert config(at, "core.editor") == config(at, "include.path") == ""
    assert config(at._replace(kept=Kept("elsewhere", at.kept.text)), "filter.a.b.clean") == ""
    assert read_settings(str(tmp_path / "none")) == read_settings(None) == Kept()
    for left in ("", "\0\0", "5", "[1]"):
        (tmp_path / "left").write_text(left)
        assert read_settings(str(tmp_path / "left")) == Kept()


def test_a_linked_worktree_keeps_the_settings_of_its_project(
    project: Path, tmp_path: Path, git: Git
) -> None:
    git("worktree", "add", "--quiet", "--detach", "../beside", cwd=project)
    keep_settings(str(tmp_path / "kept"), str(tmp_path / "beside"))
    assert read_settings(str(tmp_path / "kept")).repository == str(project / ".git")


def test_refs_and_objects_are_those_of_the_project(project: Path, git: Git) -> None:
    own = str(project / ".git")
    git("pack-refs", "--all", cwd=project)
    with fenced(os.environ, Place(own)) as environment:
        folder = Path(environment["GIT_DIR"])
        assert folder.parent == Path(find_user_file(own, os.environ, "git-dirs") or "")
        # As a filter keeps what it has taken out of a file.
        (folder / "large").mkdir()
        (folder / "large" / "x").touch()
    assert (project / ".git" / "large" / "x").exists()

    assert not run_fenced(os.environ, Place(own), "update-ref", "refs/uwf/x", "HEAD").status
    assert not run_fenced(os.environ, Place(own), "pack-refs", "--all").status
    assert not (project / ".git" / "packed-refs").is_symlink()
    assert git("rev-parse", "refs/uwf/x", cwd=project) == git("rev-parse", "HEAD", cwd=project)


def test_what_was_not_used_for_a_day_goes(project: Path) -> None:
    own = str(project / ".git")
    folder = Path(find_user_file(own, os.environ, "git-dirs") or "")
    for name in ("old", "young"):
        (folder / name / "info").mkdir(parents=True)
    os.utime(folder / "old", (1, 1))
    # As what another process takes away while the folder is listed.
    (folder / "going").symlink_to("gone")

    with fenced(os.environ, Place(own)) as environment:
        used = Path(environment["GIT_DIR"])
        os.utime(used, (1, 1))
    with fenced(os.environ, Place(own)) as environment:
        assert environment["GIT_DIR"] == str(used)

    assert sorted(os.listdir(folder)) == sorted([used.name, "going", "young"])
    assert used.stat().st_mtime > 1


def test_what_submodules_say_is_not_looked_for_is_not(
    project: Path, tmp_path: Path, git: Git
) -> None:
    files = ("-c", "protocol.file.allow=always")
    for name in ("one", "two", "three"):
        git(*files, "submodule", "--quiet", "add", str(project / ".git"), name, cwd=project)
    git("commit", "--quiet", "-m", "submodules", cwd=project)
    (project / "one" / "new").touch()
    (project / "two" / "file").write_text("other\n")
    (project / "three" / "file").write_text("other\n")
    # Which leads to the outer one again.
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},none", cwd=project)
    git("commit", "--quiet", "-m", "link", cwd=project)
    (project / "none" / ".git").mkdir(parents=True)
    place = find_place(os.environ, str(project))
    assert isinstance(place, Place)
    assert list_uncommitted(os.environ, place) == ["one", "three", "two"]

    (project / "none" / ".git").rmdir()
    git("config", "submodule.one.ignore", "untracked", cwd=project)
    git("config", "--file=.gitmodules", "submodule.two.ignore", "dirty", cwd=project)
    git("commit", "--quiet", "-am", "ignored", cwd=project)
    assert list_uncommitted(os.environ, place) == ["three"]


def test_what_is_no_repository_is_told(project: Path, tmp_path: Path) -> None:
    told = find_place(os.environ, str(tmp_path))
    assert isinstance(told, str)
    assert "not a git repository" in told
    # An agent may have made it.
    (project / "empty" / ".git").mkdir(parents=True)
    found = find_place(os.environ, str(project / "empty"))
    assert isinstance(found, Place)
    assert found.worktree == str(project)
    with pytest.raises(ProgramFailed, match="git was not started"):
        run_fenced(os.environ, Place(str(tmp_path / "gone")), "status")
