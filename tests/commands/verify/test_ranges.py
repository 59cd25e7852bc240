"""`uwf verify --files` checks the commits of files that steps name, where the project is."""

import os
from pathlib import Path

import pytest
from commands.step.test_turn_files import edits
from commands.worktree.project import Git, begin_project
from commands.world import World

from uwf_git.commands.verify.verify import check_ranges, find_targets
from uwf_git.model.names import ThreadId


@pytest.fixture
def thread(world: World, git: Git) -> ThreadId:
    begin_project(world, git)
    thread = world.begun()
    world.step(thread, edits(lambda place: (place / "new").write_text("one")))
    world.step(thread, edits(lambda place: (place / "new").write_text("two")))
    return thread


def found(world: World) -> list[tuple[bool, str]]:
    checked = check_ranges(world.store, find_targets(world.store, []))
    return [(is_lost, finding.message) for is_lost, finding in checked]


def test_what_is_there_is_no_problem(world: World, thread: ThreadId) -> None:
    assert found(world) == []


def test_a_lost_commit_and_one_of_another_turn_are_problems(
    world: World, git: Git, thread: ThreadId
) -> None:
    ref = f"refs/uwf/work/{thread}"
    whole = git("rev-parse", ref, cwd=world.place).strip()
    git("update-ref", ref, f"{ref}^", cwd=world.place)
    [(is_lost, message)] = found(world)
    assert is_lost
    assert "not both there" in message
    # The same tree, said to be of another turn.
    words = ("commit-tree", "-p", f"{ref}", "-m", "forged", f"{whole}^{{tree}}")
    git("update-ref", ref, git(*words, cwd=world.place).strip(), cwd=world.place)
    assert [is_lost for is_lost, _ in found(world)] == [True]


def test_a_project_that_is_not_here_is_a_note(world: World, thread: ThreadId) -> None:
    os.rename(world.place / ".git", Path(world.place, "gone"))
    [(is_lost, message)] = found(world)
    assert not is_lost
    assert "not here" in message
