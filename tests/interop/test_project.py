"""A project's own repository is the store, and its owner notices nothing."""

from pathlib import Path

import pytest
from commands.world import Git
from interop.told import Told, tell

from uwf_git.commands.admin import init_store


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a project with uncommitted work."""
    path = tmp_path / "project"
    path.mkdir()
    git("init", "--quiet", "--initial-branch=main", cwd=path)
    for name in ("kept", "staged", "changed"):
        (path / name).write_text("old\n")
    git("add", ".", cwd=path)
    git("commit", "--quiet", "-m", "begin", cwd=path)
    git("branch", "other", cwd=path)
    git("tag", "v1", cwd=path)
    for name in ("staged", "changed", "untracked"):
        (path / name).write_text("new\n")
    git("add", "staged", cwd=path)
    return path


def seen_by_its_owner(git: Git, project: Path) -> list[str | bytes]:
    """Return all that uwf must not touch; the files of git before git itself can refresh them."""
    files = [each for each in project.rglob("*") if each.is_file() and ".git" not in each.parts]
    return [
        *((project / ".git" / name).read_bytes() for name in ("index", "HEAD", "logs/HEAD")),
        *(each.read_bytes() for each in sorted(files)),
        git("for-each-ref", "refs/heads", "refs/tags", "refs/stash", cwd=project),
        git("status", "--porcelain", "--branch", cwd=project),
    ]


def test_head_index_branches_and_files_stay(project: Path, told: Told, git: Git) -> None:
    before, world = seen_by_its_owner(git, project), told.world
    world.store = init_store(str(project), "/", world.caller.environ).store
    tell(world)
    assert world.store.path == str(project / ".git")
    assert seen_by_its_owner(git, project) == before
    assert git("fsck", "--strict", "--no-dangling", "--no-progress", cwd=project) == ""


def test_the_project_goes_on_beside_its_threads(project: Path, told: Told, git: Git) -> None:
    world = told.world
    world.store = init_store(str(project), "/", world.caller.environ).store
    active, _ended = tell(world)
    git("commit", "--quiet", "--all", "-m", "go on", cwd=project)
    git("checkout", "--quiet", "other", cwd=project)
    git("gc", "--quiet", "--prune=now", cwd=project)
    world.reopen()
    assert world.step(active).role == "writer"
    assert git("log", "--format=%s", "--branches", cwd=project).splitlines() == ["go on", "begin"]
