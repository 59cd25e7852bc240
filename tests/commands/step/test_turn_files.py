"""The commit of a turn names the files of the project before and after it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.worktree.project import Git, begin_project
from commands.world import World, replied

from uwf_git.commands.after import warn_of_files
from uwf_git.commands.commit_events import EventOptions, EventReader
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.git.program import ProgramFailed

Edit = Callable[[Path], object]


def edits(edit: Edit, *, fails: bool = False) -> Player:
    def play(turn: Turn) -> Played:
        edit(Path(turn.workdir))
        if fails:
            return Played(None, 0, 0, error={"kind": "exited", "message": "exit status 7"})
        return replied({"text": "x", "ok": False})

    return play


def files_of(world: World, thread: ThreadId) -> list[str]:
    named = world.snapshot(thread).record.files
    return [] if named is None else named.split("..")


def user_state(place: Path, git: Git) -> dict[str, object]:
    """Return what of a repository is the user's, which no recording may change."""
    told = {path: Path(place, ".git", path).read_bytes() for path in ("index", "HEAD", "config")}
    logs = sorted(str(each) for each in (place / ".git" / "logs").rglob("*"))
    refs = git("for-each-ref", "refs/heads", "refs/stash", cwd=place)
    return {**told, "logs": logs, "refs": refs, "stash": git("stash", "list", cwd=place)}


def test_an_answer_names_what_the_person_changed(world: World, git: Git) -> None:
    begin_project(world, git)
    world.put()
    thread = world.start("nobody", "checker=human")
    world.step(thread, edits(lambda place: (place / "new").write_text("one\n")))
    after = files_of(world, thread)[1]
    world.step(thread)
    (world.place / "new").write_text("two\n")

    world.answer(thread, PersonAnswer({"ok": False}))
    named = files_of(world, thread)
    assert named[0] == after
    assert git("diff", "-U0", *named, cwd=world.place).endswith("-one\n+two\n")
    world.assert_whole()
    # The next step begins with what the person left.
    world.step(thread, edits(lambda place: (place / "new").unlink()))
    assert files_of(world, thread)[0] == named[1]


def test_a_failed_attempt_names_its_files(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun()
    failed = world.fail(thread, edits(lambda place: (place / "half").touch(), fails=True))
    commit = world.tip(thread)
    assert f"`uwf thread files {thread} {commit[:12]}`" in str(failed.hint)
    assert git("diff", "--name-only", *files_of(world, thread), cwd=world.place) == "half\n"
    events = EventReader(world.store, EventOptions()).read(commit)
    [told] = [event["payload"] for event in events if event["type"] == "node:exit"]
    assert told["files"] == "..".join(files_of(world, thread))


def test_what_an_agent_committed_is_kept(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun()

    def commit(place: Path) -> None:
        (place / "done").touch()
        git("add", "done", cwd=place)
        git("commit", "--quiet", "-m", "by the agent", cwd=place)

    world.step(thread, edits(commit))
    made = git("rev-parse", "HEAD", cwd=world.place).strip()
    git("reset", "--quiet", "--hard", "HEAD^", cwd=world.place)
    kept = git("for-each-ref", "--contains", made, "refs/uwf/work", cwd=world.place)
    assert thread in kept


def test_no_failure_of_recording_fails_the_turn(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_project(world, git)
    thread = world.begun()
    path = "uwf_git.commands.worktree.chain.commit_tree"

    def refuse(*_words: object) -> str:
        raise ProgramFailed("git", "is ill")

    with monkeypatch.context() as patched:
        patched.setattr(path, refuse)
        world.step(thread, edits(lambda place: (place / "new").touch()))
    assert files_of(world, thread) == []
    [warning] = warn_of_files(world.store)
    assert thread in warning
    assert "git is ill" in warning
    assert warn_of_files(world.store) == []


def test_a_project_that_is_slow_to_record_is_told_once(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_project(world, git)
    thread = world.begun()
    monkeypatch.setattr("uwf_git.commands.step.ending._SLOW_S", 0)
    for _ in range(2):
        world.step(thread, edits(lambda place: (place / "new").touch()))
    [warning] = warn_of_files(world.store)
    assert thread in warning
    assert "uwf.recordFiles" in warning


def test_the_setting_turns_recording_off(world: World, git: Git) -> None:
    begin_project(world, git)
    git("config", "-f", f"{world.store.path}/config", "uwf.recordFiles", "false", cwd=world.place)
    world.reopen()
    thread = world.begun()
    world.step(thread, edits(lambda place: (place / "new").touch()))
    assert files_of(world, thread) == []
