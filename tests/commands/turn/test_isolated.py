"""Where branches work: apart from each other, from one commit, at the same sub-folder."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from commands.worktree.project import (
    ITEMS,
    PAIR,
    begin_project,
    begin_split,
    children,
    commit_all,
    run,
    split,
    worktrees,
    writer,
)
from commands.world import Git, World, fails, replied
from refusing import refuses

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.start import StartRequest
from uwf_git.commands.step.step_thread import BranchStep
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import find_workdir, forget_workdir


def test_a_work_directory_with_changes_is_refused_before_anything_is_made(
    world: World, git: Git
) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    before = world.tip(thread)
    (world.place / "part" / "new").write_text("x")
    with refuses("not-clean", match="has uncommitted changes: part/new"):
        world.step(thread)
    (world.place / "part" / "new").unlink()
    (world.place / "notes").write_text("x")
    with refuses("not-clean", match="notes"):
        world.step(thread)

    assert world.tip(thread) == before
    assert not Path(world.store.path, "uwf-worktrees").exists()
    git("stash", cwd=world.place)
    (world.place / "some.tmp").write_text("ignored")
    assert world.step(thread).status == "split"


def test_a_work_directory_without_a_commit_is_refused(world: World, git: Git) -> None:
    thread = world.begun(PAIR)
    with refuses("not-isolated", match="not a git repository"):
        world.step(thread)
    git("init", "--quiet", cwd=world.place)
    with refuses("not-isolated", match="has no commit yet"):
        world.step(thread)
    assert world.snapshot(thread).record.status == "ready"


def test_all_branches_begin_at_the_commit_of_the_split(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, _ = split(world)
    found: list[str] = []
    lock = threading.Lock()

    def play(turn: Turn) -> Played:
        with lock:  # the branches work at once
            found.append(git("rev-parse", "HEAD", cwd=turn.workdir).strip())
            # While the first branch works, a person commits, and begins the next change.
            (world.place / "notes").write_text(f"{len(found)}")
            commit_all(world.place, git)
            (world.place / "notes").write_text("unfinished")
        return replied({})

    run(world, thread, play)
    assert found[:2] == [base, base]


def test_a_work_directory_below_the_top_is_the_same_folder_in_the_worktree(
    world: World, git: Git
) -> None:
    begin_project(world, git)
    workflow = world.put(PAIR).workflow
    thread = world.begin(
        StartRequest(workflow, "Do it.", ("nobody",), workdir=str(world.place / "part"))
    )
    seen: list[bool] = []

    def play(turn: Turn) -> Played:
        seen.append(Path(turn.workdir, "deep").exists())
        return writer()(turn)

    run(world, thread, play)

    assert seen == [True] * 4
    # The first is that of the thread itself.
    branch = git("for-each-ref", "--format=%(refname)", "refs/uwf/work", cwd=world.place)
    assert "part/one.new" in git("ls-tree", "-r", "--name-only", branch.split()[1], cwd=world.place)


def test_a_branch_that_failed_goes_on_in_its_worktree(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)

    def play(turn: Turn) -> Played:
        Path(turn.workdir, "half").write_text("half")
        return fails()(turn)

    world.step(thread, play)
    world.retry(one)
    run(world, thread, writer())

    assert git("show", f"refs/uwf/work/{one}:half", cwd=world.place) == "half"
    assert git("show", f"refs/uwf/work/{one}:one.new", cwd=world.place) == "one"


def errors(branches: tuple[BranchStep, ...]) -> list[Exception]:
    return [each.error for each in branches if each.error is not None]


def test_a_worktree_that_somebody_removed_is_told_and_made_again(world: World, git: Git) -> None:
    thread, (_, two) = begin_split(world, git)

    def play(turn: Turn) -> Played:
        git("commit", "--quiet", "--allow-empty", "-m", "kept", cwd=turn.workdir)
        return replied({})

    world.step(thread, play)
    lost = find_workdir(world.store, two)
    assert lost is not None
    shutil.rmtree(lost)

    (error,) = errors(world.step(thread, writer()).branches)

    assert isinstance(error, Refused)
    assert error.code == "worktree-gone"
    assert (error.facts["thread"], error.facts["path"]) == (two, lost)
    assert f"--workdir {world.place}" in (error.hint or "")
    assert world.step(two, writer(), workdir=str(world.place)).role == "three"
    run(world, thread, writer())
    assert "kept" in git("log", "--format=%s", f"refs/uwf/work/{two}", cwd=world.place)
    assert worktrees(world, git) == []


def test_branches_of_a_branch_work_in_its_worktree(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(ITEMS)
    places: dict[str, str] = {}

    run(world, thread, writer(places))

    assert places["onea"] == places["twoa"] != places["oneb"] == places["twob"]
    assert str(world.place) not in places.values()
    assert worktrees(world, git) == []
    refs = git("for-each-ref", "--format=%(refname)", "refs/uwf/work", cwd=world.place).split()
    # Those of the branches inside, which work in the worktree of the outer one, too.
    assert len(refs) == 2 + 4


def test_branches_apart_within_a_branch_apart_begin_at_its_commit(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(ITEMS.replace("name: inner", "name: inner\n      isolation: worktree"))
    places: dict[str, str] = {}

    run(world, thread, writer(places))

    assert len(set(places.values())) == 4
    assert worktrees(world, git) == []
    refs = git("for-each-ref", "--format=%(refname)", "refs/uwf/work", cwd=world.place).split()
    assert len(refs) == 6


def test_two_threads_split_the_same_project_at_once(world: World, git: Git) -> None:
    begin_project(world, git)
    workflow = world.put(ITEMS).workflow
    threads = [world.start(workflow=workflow) for _ in range(2)]
    for thread in threads * 3:
        world.step(thread, writer())
    for thread in threads:
        run(world, thread, writer())

    assert worktrees(world, git) == []
    refs = git("for-each-ref", "--format=%(refname)", "refs/uwf/work", cwd=world.place).split()
    assert len(refs) == 2 * (2 + 4)


def test_a_branch_in_another_store_has_a_worktree_of_the_directory_there(
    world: World, git: Git, tmp_path: Path
) -> None:
    thread, (one, _) = begin_split(world, git)
    world.step(thread, fails())
    clone, there = tmp_path / "clone.git", tmp_path / "there"
    git("clone", "--quiet", "--mirror", world.store.path, str(clone), cwd=tmp_path)
    git("remote", "remove", "origin", cwd=clone)
    git("clone", "--quiet", str(world.place), str(there), cwd=tmp_path)
    other = World(there, open_store(str(clone), environ=os.environ), world.caller, world.new_id)
    places: dict[str, str] = {}

    told = errors(other.step(thread, writer(places), command="nobody").branches)
    assert [getattr(each, "code", "") for each in told] == ["workdir-unknown"] * 2
    assert f"`uwf thread run {thread} --workdir PATH`" in str(getattr(told[0], "hint", ""))
    other.step(one, writer(places), command="nobody", workdir=str(there))
    ended = other.step(one)

    assert ended.work == f"refs/uwf/work/{one}"
    assert not places["one"].startswith(str(there))
    assert git("show", f"{ended.work}:one.new", cwd=there) == "one"
    assert worktrees(other, git) == []
    # That of the first store is there still.
    assert len(worktrees(world, git)) == 2


def test_a_forgotten_work_directory_is_found_again(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)
    world.step(thread, fails())
    known = find_workdir(world.store, ThreadId(one))
    forget_workdir(world.store, ThreadId(one))
    places: dict[str, str] = {}

    world.step(one, writer(places))

    assert places["one"] == known


@pytest.mark.parametrize("command", ["./agent.tmp", "../above"])
def test_an_agent_that_a_worktree_lacks_is_that_of_the_work_directory(
    world: World, git: Git, command: str
) -> None:
    """One that git ignores, as those of a virtual environment, or above the repository."""
    begin_project(world, git)
    assert Path(world.program("pwd > ran\necho done", name=command)).exists()
    thread = world.begun(PAIR)
    world.step(thread, command=command, workdir=str(world.place))
    one, _ = children(world.snapshot(thread))
    begin_branch(world.store, world.snapshot(thread), 0)

    world.step(one, agent_player(lambda _chunk: None), command=command)

    place = find_workdir(world.store, one)
    assert place != str(world.place)
    assert Path(str(place), "ran").read_text() == f"{place}\n"
