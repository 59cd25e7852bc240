"""What git says of the user's repository."""

import os
from pathlib import Path

import pytest
from commands.worktree.project import Git
from refusing import refuses

from uwf_git.commands.worktree.repository import commit_tree, find_origin, git_of
from uwf_git.store.git.program import ProgramFailed


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    place = tmp_path / "a project"
    (place / "part").mkdir(parents=True)
    git("init", "--quiet", cwd=place)
    (place / "part" / "file").write_text("x")
    git("add", ".", cwd=place)
    git("commit", "--quiet", "-m", "x", cwd=place)
    return place


def test_a_variable_of_git_does_not_lead_to_another_repository(project: Path) -> None:
    environ = {**os.environ, "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/"}
    assert find_origin(environ, str(project)).repository == str(project / ".git")


def test_changes_are_told_by_name(project: Path, git: Git) -> None:
    git("mv", "part/file", "part/moved", cwd=project)
    for number in range(4):
        (project / f"new {number}").touch()

    with refuses("not-clean") as raised:
        find_origin(os.environ, str(project / "part"))

    assert raised.value.facts["changed"][:3] == ["part/file", "part/moved", "new 0"]
    assert raised.value.message.endswith(": part/file, part/moved, new 0 and 3 more")
    assert "git -C '" in (raised.value.hint or "")


def test_a_git_directory_is_no_work_tree(project: Path) -> None:
    with refuses("not-isolated", match="it is not in a work tree"):
        find_origin(os.environ, str(project / ".git"))


def test_a_commit_is_nobodys(project: Path, git: Git) -> None:
    tree = git("rev-parse", "@^{tree}", cwd=project).strip()
    commit = commit_tree(git_of(os.environ, str(project / ".git")), tree, (), "words\n")
    told = git("show", "-s", "--format=%an %ae %cn %ce %s", commit, cwd=project)
    assert told == "uwf uwf@uwf uwf uwf@uwf words\n"


def test_what_git_says_is_the_reason(project: Path) -> None:
    git = git_of(os.environ, str(project / ".git"))
    with pytest.raises(ProgramFailed, match="git rev-parse failed: fatal: "):
        git.ask("rev-parse", "--verify", "nothing")
    with pytest.raises(ProgramFailed, match="git worktree failed: fatal: "):
        git.run_guarded("worktree", "add", "../x", "nothing")
