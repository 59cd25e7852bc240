"""The tree of a worktree: everything that is not ignored; the same however often it is made."""

from pathlib import Path

import pytest
from commands.worktree.project import Git, begin_project, commit_all
from commands.world import World

from uwf_git.commands.worktree.record import Worktree
from uwf_git.commands.worktree.repository import name_index, write_tree


@pytest.fixture
def worktree(world: World, git: Git) -> Worktree:
    """Return a worktree of a project, with a change, a new file and a repository in it."""
    base = begin_project(world, git)
    place = world.place.parent / "apart"
    git("worktree", "add", "--quiet", "--detach", str(place), cwd=world.place)
    (place / "notes").write_text("changed\n")
    (place / "new").write_text("new\n")
    (place / "ignored.tmp").write_text("x")
    (place / "part" / "deep").unlink()
    git("init", "--quiet", "inner", cwd=place)
    (place / "inner" / "text").write_text("inside\n")
    commit_all(place / "inner", git)
    (place / "inner" / "text").write_text("and more\n")
    thread, source = world.new_id(), str(world.place)
    git_dir = git("rev-parse", "--absolute-git-dir", cwd=place).strip()
    path, repository = str(place), str(world.place / ".git")
    return Worktree(thread, world.new_id(), source, repository, base, path, path, git_dir)


def test_a_tree_has_everything_and_the_index_stays(
    world: World, git: Git, worktree: Worktree
) -> None:
    before = git("status", "--porcelain", cwd=worktree.path)
    environ, at = world.caller.environ, worktree.git_dir

    tree, kept = write_tree(environ, worktree, git_dir=at, head=worktree.base)
    again = write_tree(environ, worktree, git_dir=at, head=worktree.base)

    names = git("ls-tree", "-r", "--name-only", tree, cwd=worktree.path).split()
    assert names == [".gitignore", "inner", "new", "notes"]
    (inner,) = kept
    assert git("rev-parse", f"{tree}:inner", cwd=worktree.path).strip() == inner.commit
    assert git("show", f"{inner.ref}:text", cwd=world.place) == "and more\n"
    assert git("show", f"{inner.ref}^:text", cwd=world.place) == "inside\n"
    assert again == (tree, kept)
    assert git("status", "--porcelain", cwd=worktree.path) == before
    assert not Path(name_index(worktree.path)).exists()


def test_a_tree_is_written_without_the_git_directory_of_the_worktree(
    world: World, git: Git, worktree: Worktree
) -> None:
    """As somebody leaves it who has run `git worktree prune` in a hurry."""
    (world.place / "staged").write_text("the user's own")
    git("add", "staged", cwd=world.place)

    tree, _ = write_tree(
        world.caller.environ, worktree, git_dir=worktree.repository, head=worktree.base
    )

    names = git("ls-tree", "-r", "--name-only", tree, cwd=world.place).split()
    assert names == [".gitignore", "inner", "new", "notes"]
