"""The work of branches that end is a commit of the project, and their worktrees go."""

import os
import subprocess
from pathlib import Path

import pytest
from commands.worktree.project import (
    ITEMS,
    PAIR,
    begin_project,
    begin_split,
    children,
    run,
    split,
    worktrees,
    writer,
)
from commands.world import Git, World, replied
from refusing import refuses

from uwf_git.commands.admin import gc_store
from uwf_git.commands.after import warn_of_worktrees
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.ending import end_by_kill
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import find_workdir


def work(git: Git, world: World, branch: ThreadId, path: str) -> str:
    return git("show", f"refs/uwf/work/{branch}:{path}", cwd=world.place)


def test_each_branch_leaves_a_commit_for_each_turn(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, (one, two) = split(world)

    told = run(world, thread, writer())

    assert work(git, world, one, "notes") == "begun\none\n"
    assert work(git, world, two, "notes") == "begun\ntwo\nthree\n"
    assert work(git, world, two, "two.new") == "two"
    for branch, turns in ((one, 1), (two, 2)):
        ref = f"refs/uwf/work/{branch}"
        assert git("rev-list", f"{base}..{ref}", cwd=world.place).count("\n") == turns
        said = git("log", "-1", "--format=%an <%ae>, %cn: %B", ref, cwd=world.place)
        assert said.startswith("uwf <uwf@uwf>, uwf: after ")
        assert f"Uwf-Thread: {branch}" in said
    # Nothing was merged but by a role: the closer worked in the project itself.
    assert (world.place / "notes").read_text() == "begun\ncloser\n"
    assert worktrees(world, git) == []
    assert "both: 2 completed" in told
    head = get_head(world.store, thread)
    assert list(check_thread(world.store, thread, head.commit, archived=True)) == []


def test_the_join_names_the_work_of_each_branch(world: World, git: Git) -> None:
    thread, (one, two) = begin_split(world, git)
    for _ in range(3):
        joined = world.step(thread, writer())
    assert joined.said == "both: 2 completed"

    snapshot = world.snapshot(thread)
    assert str(snapshot.get_node(snapshot.get_head_node().payload["content"]["$ref"]).payload) == (
        f"0 one: one (refs/uwf/work/{one})\n1 sequential: three (refs/uwf/work/{two})\n"
    )
    shown = show_thread(world.store, thread)["work"]
    assert [each["thread"] for each in shown] == [one, two]
    commit = git("rev-parse", f"refs/uwf/work/{two}", cwd=world.place).strip()
    assert shown[1]["commit"] == commit
    assert show_thread(world.store, two)["work"] == [
        {
            "thread": two,
            "number": 1,
            "label": "sequential",
            "ref": f"refs/uwf/work/{two}",
            "commit": commit,
            "repository": str(world.place / ".git"),
            "worktree": None,
        }
    ]


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
    assert first == "after one, step 1, attempt 1\n"
    assert git("log", "-1", "--format=%s", f"refs/uwf/work/{one}^2", cwd=world.place) == "by one\n"
    assert work(git, world, one, "late") == "late"
    assert git("log", "-1", "--format=%s", f"refs/uwf/work/{two}^2", cwd=world.place) == "by two\n"
    git("merge", "--quiet", f"refs/uwf/work/{one}", cwd=world.place)
    assert (world.place / "late").exists()


def test_secrets_are_in_no_commit_and_stay_in_the_worktree(world: World, git: Git) -> None:
    begin_project(world, git)
    environ = dict(world.caller.environ)
    world.caller = world.caller._replace(environ={**environ, "SHOP_API_KEY": "sk-of-a-shop-123"})
    thread, (one, _) = split(world)
    places: dict[str, str] = {}

    def play(turn: Turn) -> Played:
        played = writer(places)(turn)
        if turn.role == "one":
            place = Path(turn.workdir)
            (place / "conf.ini").write_text("key=sk-of-a-shop-123")
            (place / "large").write_bytes(b"x" * (11 << 20) + b"sk-of-a-shop-123")
            git("init", "--quiet", "inner", cwd=place)
            (place / "inner" / "text").write_text("text")
            for secret in (place / ".env", place / "staged.pem", place / "inner" / ".env"):
                secret.write_text("A=1")
            git("add", "staged.pem", cwd=place)
            (place / "notes").write_text("key=sk-of-a-shop-123")
        return played

    run(world, thread, play)

    def check() -> None:
        for refs in (f"work/{one}", f"inner/{one}/inner"):
            told = git("log", "--patch", "--text", "-m", f"refs/uwf/{refs}", cwd=world.place)
            assert not any(each in told for each in ("sk-of", "A=1")), refs

    check()
    assert work(git, world, one, "one.new") == "one"
    assert worktrees(world, git) == [places["one"]]
    (warning,) = warn_of_worktrees(world.store)
    assert "no commit may have" in warning
    # Whoever looks without the key cannot find it.
    gc_store(world.store, environ)
    check()
    for name in (".env", "staged.pem", "conf.ini", "large", "notes", "inner/.env"):
        Path(places["one"], name).unlink()
    gc_store(world.store, environ)
    assert worktrees(world, git) == []


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


def test_a_branch_in_which_nothing_ran_has_the_commit_of_the_split(world: World, git: Git) -> None:
    base = begin_project(world, git)
    thread, (_, two) = split(world)
    begin_branch(world.store, world.snapshot(thread), 1)
    (world.place / "notes").write_text("changed meanwhile\n")

    world.kill(two, reason="enough")

    assert git("rev-parse", f"refs/uwf/work/{two}", cwd=world.place).strip() == base


def lock(world: World, branch: ThreadId) -> Path:
    """Have git refuse to write the ref of the work of a branch; return what makes it do so."""
    locked = world.place / ".git" / "refs" / "uwf" / "work" / f"{branch}.lock"
    locked.parent.mkdir(parents=True, exist_ok=True)
    locked.touch()
    return locked


def test_a_branch_is_killed_even_if_its_work_cannot_be_committed(world: World, git: Git) -> None:
    thread, (_, two) = begin_split(world, git)
    world.step(thread, writer())
    world.step(two, writer())
    place = find_workdir(world.store, two)
    Path(str(place), "late").touch()
    locked = lock(world, two)
    with pytest.raises(ProgramFailed, match="git update-ref failed: "):
        world.step(two, writer())
    world.kill(two, reason="enough")
    assert Path(str(place), "two.new").exists()
    (told,) = warn_of_worktrees(world.store)
    assert f"branch {two} stays at {place}, since its work cannot be kept: git update-ref" in told
    assert str(place) in worktrees(world, git)
    assert warn_of_worktrees(world.store) == []

    locked.unlink()
    gc_store(world.store, world.caller.environ)

    assert work(git, world, two, "two.new") == "two"
    assert len(worktrees(world, git)) == 1


def test_a_worktree_whose_project_is_away_stays(world: World, git: Git) -> None:
    thread, (_, two) = begin_split(world, git)
    world.step(thread, writer())
    place = Path(find_workdir(world.store, two) or "")
    away = world.place / ".git.away"
    (world.place / ".git").rename(away)

    world.kill(two, reason="enough")
    gc_store(world.store, world.caller.environ)

    assert (place / "two.new").exists()
    (told,) = warn_of_worktrees(world.store)
    assert "there is no " in told
    away.rename(world.place / ".git")
    gc_store(world.store, world.caller.environ)
    assert work(git, world, two, "two.new") == "two"
    assert str(place) not in worktrees(world, git)


def test_worktrees_that_agents_made_inside_go_as_well(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)

    def play(turn: Turn) -> Played:
        if turn.role == "one":
            git("worktree", "add", "--quiet", "-b", "theirs", "deep", cwd=turn.workdir)
            Path(turn.workdir, "deep", "committed").write_text("x")
            git("add", "committed", cwd=Path(turn.workdir, "deep"))
            git("commit", "--quiet", "-m", "inside", cwd=Path(turn.workdir, "deep"))
            Path(turn.workdir, "deep", "late").write_text("late")
        return replied({})

    run(world, thread, play)

    assert worktrees(world, git) == []
    assert git("log", "-1", "--format=%s", "theirs", cwd=world.place) == "inside\n"
    inner = f"refs/uwf/inner/{one}/deep"
    assert git("show", f"{inner}:late", cwd=world.place) == "late"
    assert git("log", "-1", "--format=%s", f"{inner}^", cwd=world.place) == "inside\n"
    fork = world.fork(thread, "1")
    world.kill(fork)
    world.remove(fork)
    assert git("show", f"{inner}:late", cwd=world.place) == "late"


def test_leftovers_of_a_killed_agent_keep_nothing(world: World, git: Git) -> None:
    """Its lock on the index, a merge without an end, folders in which nobody may write."""
    thread, (one, _) = begin_split(world, git)

    def play(turn: Turn) -> Played:
        if turn.role == "one":
            place = Path(turn.workdir)
            git("checkout", "--quiet", "-b", "theirs", cwd=place)
            (place / "notes").write_text("theirs")
            git("commit", "--quiet", "-am", "theirs", cwd=place)
            git("checkout", "--quiet", "--detach", "main", cwd=place)
            (place / "notes").write_text("ours")
            git("commit", "--quiet", "-am", "ours", cwd=place)
            with pytest.raises(subprocess.CalledProcessError):
                git("merge", "theirs", cwd=place)
            Path(git("rev-parse", "--absolute-git-dir", cwd=place).strip(), "index.lock").touch()
            (place / "cache").mkdir()
            (place / "cache" / "file").write_text("x")
            (place / "cache").chmod(0o555)
        return replied({})

    run(world, thread, play)

    assert ">>>>>>> theirs" in work(git, world, one, "notes")
    assert work(git, world, one, "cache/file") == "x"
    assert worktrees(world, git) == []


def test_an_edit_in_the_moment_of_a_commit_is_kept(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)

    def play(turn: Turn) -> Played:
        if turn.role != "one":
            return replied({})
        notes, at = Path(turn.workdir, "notes"), 1_700_000_000
        notes.write_text("aaaa")
        os.utime(notes, (at, at))
        git("commit", "--quiet", "-am", "a", cwd=turn.workdir)
        git_dir = git("rev-parse", "--absolute-git-dir", cwd=turn.workdir).strip()
        notes.write_text("bbbb")
        # As if all was in one tick of the clock of the file system.
        os.utime(notes, (at, at))
        os.utime(Path(git_dir, "index"), (at, at))
        return replied({})

    git("config", "core.trustctime", "false", cwd=world.place)
    run(world, thread, play)

    assert work(git, world, one, "notes") == "bbbb"


def test_no_hook_runs_and_nothing_is_signed(world: World, git: Git) -> None:
    begin_project(world, git)
    git("config", "commit.gpgSign", "true", cwd=world.place)
    for name in ("pre-commit", "post-checkout", "reference-transaction", "commit-msg"):
        hook = world.place / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {world.place.parent}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    thread, (one, _) = split(world)

    run(world, thread, writer())

    assert list(world.place.parent.glob("ran-*")) == []
    assert "gpgsig" not in git("cat-file", "commit", f"refs/uwf/work/{one}", cwd=world.place)


def test_the_worktree_of_a_killed_branch_waits_for_the_branches_in_it(
    world: World, git: Git
) -> None:
    thread, _ = begin_split(world, git, ITEMS)
    world.step(thread, writer())
    outer, _ = children(world.snapshot(thread))
    world.step(outer, writer())
    inner, other = children(world.snapshot(outer))

    end_by_kill(world.store, world.caller, outer, reason="enough")
    assert len(worktrees(world, git)) == 1
    place = find_workdir(world.store, inner)
    assert place is not None
    Path(place, "late").write_text("late")
    for branch in (inner, other):
        if not get_head(world.store, branch).archived:
            end_by_kill(world.store, world.caller, branch, reason="enough")

    assert worktrees(world, git) == []
    assert work(git, world, outer, "late") == "late"


def test_a_kill_of_the_thread_keeps_the_work_of_all_its_branches(world: World, git: Git) -> None:
    thread, _ = begin_split(world, git, ITEMS)
    world.step(thread, writer())
    world.step(thread, writer())
    branches = children(world.snapshot(thread))
    assert len(worktrees(world, git)) == 2

    world.kill(thread, reason="enough")

    assert worktrees(world, git) == []
    assert [work(git, world, each, "one.new") for each in branches] == ["one", "one"]


# What is left of a branch that worked apart goes when its thread is removed.


def works(world: World, git: Git) -> list[str]:
    """List the refs of works in the project."""
    return git("for-each-ref", "--format=%(refname)", "refs/uwf", cwd=world.place).splitlines()


def test_a_joined_branch_alone_takes_its_own_work_along(world: World, git: Git) -> None:
    thread, (one, two) = begin_split(world, git)
    run(world, thread, writer())

    world.remove(one)

    # The closer worked in the project itself.
    assert works(world, git) == [f"refs/uwf/work/{each}" for each in (thread, two)]
    assert [each["thread"] for each in show_thread(world.store, thread)["work"]] == [two]

    world.remove(thread)

    assert works(world, git) == []
    assert find_workdir(world.store, thread) is None


def test_commit_that_others_made_deletes_no_branch_of_the_project(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)
    run(world, thread, writer())
    own = f"refs/uwf/inner/{one}/x"
    for ref in (own, "refs/heads/precious"):
        git("update-ref", ref, "HEAD", cwd=world.place)
    said = "\n".join(f"x: {ref} of {world.place}/.git" for ref in (own, "refs/heads/precious"))
    forged = git("commit-tree", "-m", said, "HEAD^{tree}", cwd=world.place).strip()
    git("update-ref", f"refs/uwf/work/{one}", forged, cwd=world.place)

    world.remove(one)

    assert git("for-each-ref", own, "refs/heads/precious", cwd=world.place).count("\n") == 1
    git("rev-parse", "--verify", "precious", cwd=world.place)


def test_the_refs_of_a_project_that_was_renamed_go_as_well(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    run(world, thread, writer())
    place = world.place.rename(world.place.parent / "renamed")

    world.caller = world.caller._replace(cwd=str(place))
    assert all(removed.work for removed in world.remove(thread))

    assert git("for-each-ref", "refs/uwf", cwd=place) == ""


def test_a_branch_whose_worktree_has_to_stay_stays_as_well(world: World, git: Git) -> None:
    thread, (one, _) = begin_split(world, git)
    begin_branch(world.store, world.snapshot(thread), 0)
    places: dict[str, str] = {}
    world.step(one, writer(places))
    Path(places["one"], "late").touch()
    locked = lock(world, one)
    world.kill(thread)
    assert worktrees(world, git) == [places["one"]]

    with refuses("worktree-stays", match="is still there"):
        world.remove(one)

    assert get_head(world.store, one).archived
    locked.unlink()
    world.remove(one)
    assert worktrees(world, git) == []
