"""What is recorded of worktrees: what was written is read, for each thread by itself."""

import os
from pathlib import Path

import pytest
from commands.worktree.project import PAIR, Git, begin_project, children, worktrees
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.worktree.record import (
    SplitOrigin,
    Worktree,
    find_split_origin,
    find_worktree,
    forget_worktrees,
    list_parents,
    list_worktrees,
    place_of,
    write_origin,
    write_worktree,
)
from uwf_git.commands.worktree.worktrees import make_worktree
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot

PARENT = ThreadId("01J00000000000000000000001")
CHILD = ThreadId("01J00000000000000000000002")
# A path may hold any byte but 0.
ODD = "/a b\n\udcff/é"


def begun(store: Store) -> Worktree:
    path = place_of(store, CHILD) or ""
    return Worktree(CHILD, PARENT, ODD, "/repository/.git", "0" * 40, path, f"{path}/part")


@pytest.fixture(name="store")
def at_home(store: Store, tmp_path: Path) -> Store:
    """Return a store whose user has a home directory."""
    return store._replace(trust_file=str(tmp_path / "home" / "trust"))


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    assert find_worktree(store, PARENT, CHILD) is None
    assert list_worktrees(store, PARENT) == []
    whole = begun(store)._replace(git_dir="/repository/.git/worktrees/x", commit="1" * 40)
    write_worktree(store, begun(store))
    write_worktree(store, whole)

    assert find_worktree(store, PARENT, CHILD) == whole
    assert list_worktrees(store, PARENT) == [whole]
    assert list(list_parents(store)) == [PARENT]


def test_an_origin_is_that_of_one_split(store: Store) -> None:
    origin = SplitOrigin("0.1/1", ODD, "/repository/.git", "part/", "0" * 40)
    write_origin(store, PARENT, origin)

    assert find_split_origin(store, PARENT, "0.1/1") == origin
    assert find_split_origin(store, PARENT, "0.2/1") is None
    assert find_split_origin(store, CHILD, "0.1/1") is None


def test_what_has_a_worktree_is_not_forgotten(store: Store) -> None:
    write_worktree(store, begun(store))
    forget_worktrees(store, PARENT)
    assert list_worktrees(store, PARENT) == [begun(store)]

    write_worktree(store, begun(store)._replace(is_removed=True))
    forget_worktrees(store, PARENT)
    assert list(list_parents(store)) == []
    forget_worktrees(store, PARENT)


# Worktrees of branches are made once, whole, at the commit of the split.


def begin(world: World, git: Git, *settings: str) -> Snapshot:
    begin_project(world, git)
    if settings:
        git(*settings, cwd=world.place)
    thread = world.begun(PAIR)
    world.step(thread)
    tip = world.snapshot(thread)
    begin_branch(world.store, tip, 0)
    return world.snapshot(children(tip)[0])


def test_half_of_a_worktree_is_made_anew(world: World, git: Git) -> None:
    branch = begin(world, git)
    environ, source = world.caller.environ, str(world.place)
    made = make_worktree(world.store, environ, branch, source=source)
    # As a process leaves it that was killed while git made it, locked.
    write_worktree(world.store, made._replace(git_dir=""))
    git("worktree", "lock", "--reason", "initializing", made.path, cwd=world.place)
    Path(made.workdir, "notes").unlink()

    assert make_worktree(world.store, environ, branch, source=source) == made
    assert Path(made.workdir, "notes").read_text() == "begun\n"
    assert worktrees(world, git) == [made.path]


def test_a_user_without_a_home_is_told(world: World, git: Git) -> None:
    branch = begin(world, git)
    homeless = world.store._replace(trust_file=None)
    with refuses("no-place-for-worktrees", match="no home directory"):
        make_worktree(homeless, world.caller.environ, branch, source=str(world.place))


def test_a_worktree_has_the_files_that_the_project_has(world: World, git: Git) -> None:
    branch = begin(world, git, "sparse-checkout", "set", "nothing")
    made = make_worktree(world.store, world.caller.environ, branch, source=str(world.place))

    assert sorted(os.listdir(made.path)) == [".git", ".gitignore", "notes"]
    assert git("status", "--porcelain", cwd=made.path) == ""
    assert git("sparse-checkout", "list", cwd=made.path) == "nothing\n"
