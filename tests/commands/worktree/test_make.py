"""Worktrees of branches are made once, whole, at the commit of the split."""

import os
from pathlib import Path

from commands.worktree.project import PAIR, Git, begin_project, children, worktrees
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.worktree.record import write_worktree
from uwf_git.commands.worktree.worktrees import make_worktree
from uwf_git.store.threads.snapshot import Snapshot


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
