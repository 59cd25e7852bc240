"""The work of branches that end is a commit of the project, and their worktrees go."""

from pathlib import Path

import pytest
from commands.worktree.project import (
    PAIR,
    Git,
    begin_project,
    children,
    run,
    worktrees,
    writer,
)
from commands.world import World, fails, replied

from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.threads.heads import get_head


def work(git: Git, world: World, branch: ThreadId, path: str) -> str:
    return git("show", f"refs/uwf/work/{branch}:{path}", cwd=world.place)


def split(world: World, source: str = PAIR) -> tuple[ThreadId, list[ThreadId]]:
    thread = world.begun(source)
    world.step(thread)
    return thread, children(world.snapshot(thread))


def test_each_branch_leaves_one_commit(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, (one, two) = split(world)

    told = run(world, thread, writer())

    assert work(git, world, one, "notes") == "begun\none\n"
    assert work(git, world, two, "notes") == "begun\ntwo\nthree\n"
    assert work(git, world, two, "two.new") == "two"
    for branch in (one, two):
        ref = f"refs/uwf/work/{branch}"
        assert git("rev-list", f"{base}..{ref}", cwd=world.place).count("\n") == 1
        said = git("log", "-1", "--format=%an <%ae>, %cn: %B", ref, cwd=world.place)
        assert said.startswith("uwf <uwf@uwf>, uwf: work of branch")
        assert f"Uwf-Thread: {branch}" in said
    # Nothing was merged but by a role: the closer worked in the project itself.
    assert (world.place / "notes").read_text() == "begun\ncloser\n"
    assert worktrees(world, git) == []
    assert "both: 2 completed" in told
    head = get_head(world.store, thread)
    assert list(check_thread(world.store, thread, head.commit, archived=True)) == []


def test_the_join_names_the_work_of_each_branch(world: World, git: Git) -> None:
    begin_project(world, git)
    thread, (one, two) = split(world)
    for _ in range(3):
        joined = world.step(thread, writer())
    assert joined.said == "both: 2 completed"

    snapshot = world.snapshot(thread)
    content = snapshot.get_head_node().payload["content"]["$ref"]
    assert str(snapshot.get_node(content).payload) == (
        f"0 one: one (refs/uwf/work/{one})\n1 sequential: three (refs/uwf/work/{two})\n"
    )
    shown = show_thread(world.store, thread)["work"]
    assert [each["thread"] for each in shown] == [one, two]
    commit = git("rev-parse", f"refs/uwf/work/{two}", cwd=world.place).strip()
    assert shown[1]["commit"] == commit
    assert show_thread(world.store, two)["work"] == [
        {
            "thread": two,
            "ref": f"refs/uwf/work/{two}",
            "commit": commit,
            "repository": str(world.place / ".git"),
            "worktree": None,
        }
    ]


def test_the_result_of_its_end_names_the_work(world: World, git: Git) -> None:
    begin_project(world, git)
    thread, (one, _) = split(world)
    world.step(thread, writer())

    assert world.step(one, writer()).work == f"refs/uwf/work/{one}"


def test_what_agents_committed_is_kept_as_they_made_it(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, (one, two) = split(world)

    def play(turn: Turn) -> Played:
        if turn.role in {"one", "two"}:
            Path(turn.workdir, "notes").write_text(turn.role)
            git("commit", "--quiet", "-am", f"by {turn.role}", cwd=turn.workdir)
        if turn.role == "one":
            Path(turn.workdir, "late").write_text("late")
        return replied({})

    run(world, thread, play)

    first = git(
        "log", "--first-parent", "--format=%s", f"{base}..refs/uwf/work/{one}", cwd=world.place
    )
    assert first == f"work of branch {one}\n"
    assert git("log", "-1", "--format=%s", f"refs/uwf/work/{one}^2", cwd=world.place) == "by one\n"
    assert work(git, world, one, "late") == "late"
    assert git("log", "-1", "--format=%s", f"refs/uwf/work/{two}^2", cwd=world.place) == "by two\n"
    git("merge", "--quiet", f"refs/uwf/work/{one}", cwd=world.place)
    assert (world.place / "late").exists()


def test_a_branch_that_changed_nothing_has_the_commit_at_which_it_began(
    world: World, git: Git
) -> None:
    base = begin_project(world, git)
    thread, branches = split(world)

    def play(turn: Turn) -> Played:
        Path(turn.workdir, "ignored.tmp").write_text("x")
        return replied({})

    run(world, thread, play)

    for branch in branches:
        assert git("rev-parse", f"refs/uwf/work/{branch}", cwd=world.place).strip() == base


def test_a_branch_that_is_killed_loses_no_edit(world: World, git: Git) -> None:
    begin_project(world, git)
    thread, (one, two) = split(world)
    world.step(thread, writer())

    kill_thread(world.store, world.caller, two, reason="enough")
    kill_thread(world.store, world.caller, one, reason="enough")

    assert work(git, world, two, "notes") == "begun\ntwo\n"
    assert worktrees(world, git) == []


def test_a_branch_in_which_nothing_ran_has_the_commit_of_the_split(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, (one, two) = split(world)
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    world.step(one, writer())
    (world.place / "notes").write_text("changed meanwhile\n")

    kill_thread(world.store, world.caller, two, reason="enough")

    assert git("rev-parse", f"refs/uwf/work/{two}", cwd=world.place).strip() == base
