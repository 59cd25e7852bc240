import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from commands.worktree.project import begin_project, begin_split, commit_all, writer
from commands.world import DEMO, Git, World, replied
from refusing import refuses

from uwf_git.commands.admin import gc_store
from uwf_git.commands.after import warn_of_files
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.commit_events import EventOptions, EventReader
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.inspect.show import view_step
from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.turn.branches import ThreadNotActive, read_active
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.commands.worktree import worktrees
from uwf_git.commands.worktree.record import Worktree, list_worktrees, write_worktree
from uwf_git.model.builtin import AGENT_EXEC_CONTEXT
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.store import Store


def left_behind(world: World, thread: str) -> list[str]:
    """List the local files of a thread."""
    return [
        os.path.join(folder, name)
        for folder, folders, files in os.walk(world.store.path)
        for name in (*folders, *files)
        if thread in name and "refs" not in folder
    ]


def test_end_of_a_thread_leaves_nothing_on_this_machine(world: World, thread: ThreadId) -> None:
    world.fail(thread)
    os.makedirs(world.store.local_path("run", thread, "0" * 40))
    assert left_behind(world, thread)

    end_thread(world.store, world.caller, read_active(world.store, thread), event="end")

    assert left_behind(world, thread) == []


# Worktrees of branches.


class Killed(BaseException):
    """Stands for the end of the process."""


def dies(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object], *, in_record: bool) -> None:
    """Let *action* die when a worktree is gone, before that is recorded, or when half of it is."""

    def write(store: Store, worktree: Worktree) -> None:
        if worktree.is_removed:
            raise Killed
        write_worktree(store, worktree)

    def remove(_environ: object, worktree: Worktree) -> None:
        Path(worktree.path, "notes").unlink()
        raise Killed

    with monkeypatch.context() as patched:
        if in_record:
            patched.setattr(worktrees, "write_worktree", write)
        else:
            patched.setattr(worktrees, "_remove", remove)
        with pytest.raises(Killed):
            action()


def left(world: World, thread: ThreadId) -> list[str]:
    return [each.path for each in list_worktrees(world.store, thread) if not each.is_removed]


def test_half_of_a_worktree_never_replaces_the_work(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, (one, _) = begin_split(world, git)
    world.step(thread, writer())

    dies(monkeypatch, lambda: world.kill(one, reason="enough"), in_record=False)
    gc_store(world.store, world.caller.environ)

    assert git("show", f"refs/uwf/work/{one}:notes", cwd=world.place) == "begun\none\n"
    assert [each.thread for each in list_worktrees(world.store, thread) if each.is_removed] == [one]


@pytest.mark.parametrize("is_of_thread", [True, False])
def test_a_record_that_a_kill_left_is_mended_by_a_kill_of_the_thread(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch, *, is_of_thread: bool
) -> None:
    thread, (one, two) = begin_split(world, git)
    world.step(thread, writer())
    world.kill(two, reason="enough")

    dies(monkeypatch, lambda: world.kill(thread if is_of_thread else one), in_record=True)
    assert len(left(world, thread)) == 1
    with suppress(ThreadNotActive):
        world.kill(thread)

    assert left(world, thread) == []


def test_a_folder_that_a_record_names_is_not_removed(
    world: World, git: Git, tmp_path: Path
) -> None:
    """An agent may write the record where the store is the project's own repository."""
    thread, _ = begin_split(world, git)
    world.step(thread, writer())
    precious = tmp_path / "precious"
    precious.mkdir()
    for each in list_worktrees(world.store, thread):
        write_worktree(world.store, each._replace(path=str(precious), workdir=str(precious)))

    world.kill(thread, reason="enough")
    gc_store(world.store, world.caller.environ)

    assert precious.is_dir()


# What a step keeps besides its result: the end of its agent's log, and named variables.

ANSWER = """echo '{"meta": {"text": "x", "ok": true}}'"""


def stepped(world: World, script: str) -> tuple[ThreadId, Node]:
    """Take a step by a program; return its node."""
    thread = world.start(world.program(script + ANSWER), workflow=world.put().workflow)
    world.step(thread, agent_player(None))
    world.assert_whole()
    return thread, world.snapshot(thread).get_head_node()


def referred(world: World, thread: ThreadId, step: Node, field: str) -> Node:
    return world.snapshot(thread).get_node(NodeHash(step.payload[field]["$ref"]))


def test_only_the_end_of_a_log_is_kept_as_the_setting_says(world: World) -> None:
    world.configure("uwf.keepLogs", "10")

    thread, step = stepped(world, "echo 'a long beginning, the end' >&2; ")

    assert referred(world, thread, step, "stderr").payload == ", the end\n"


def test_secret_that_the_limit_cuts_in_two_is_not_kept_by_half(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "0123456789" * 4
    monkeypatch.setitem(cast("dict[str, str]", world.caller.environ), "MY_API_KEY", secret)
    # The last 64 KiB begin in the middle of the secret.
    thread, step = stepped(world, f"echo {secret} >&2; yes 'a line' | head -c {65536 - 20} >&2; ")

    log = referred(world, thread, step, "stderr").payload
    assert log.startswith("a line\n")
    assert "0123456789" not in log


def test_variables_that_the_setting_names_are_kept_masked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = cast("dict[str, str]", world.caller.environ)
    monkeypatch.setitem(environ, "MY_API_KEY", "sk-0123456789")
    monkeypatch.setitem(environ, "MY_LEVEL", "high")
    world.configure("uwf.recordEnv", "MY_* UWF_ROLE")

    thread, step = stepped(world, "")

    kept = referred(world, thread, step, "execContext")
    assert kept.type == AGENT_EXEC_CONTEXT
    assert kept.payload == {
        "env": {"MY_API_KEY": "[masked]", "MY_LEVEL": "high", "UWF_ROLE": "writer"}
    }
    assert view_step(world.snapshot(thread), step)["execContext"] == kept.hash


# The commit of a turn names the files of the project before and after it.

Edit = Callable[[Path], object]


def edits(edit: Edit, *, fails: bool = False) -> Player:
    def play(turn: Turn) -> Played:
        edit(Path(turn.workdir))
        if fails:
            return Played(None, 0, 0, error={"kind": "exited", "message": "exit status 7"})
        return replied({"text": "x", "ok": False})

    return play


def test_a_store_that_is_renamed_under_a_step_is_made_by_half_by_nobody(
    world: World, git: Git, tmp_path: Path
) -> None:
    begin_project(world, git)
    thread = world.begun()
    place, moved = Path(world.store.path), tmp_path / "moved"
    with refuses("store-failed", match="is gone; writer of thread"):
        world.step(thread, edits(lambda _place: place.rename(moved)))
    assert not place.exists()
    assert list((moved / "uwf" / "run" / thread).iterdir())


@pytest.fixture
def fresh(world: World, git: Git) -> ThreadId:
    """Return a thread of the project that has taken no step."""
    begin_project(world, git)
    return world.begun()


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
    thread = world.begun(DEMO, "nobody", "checker=human")
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


@pytest.mark.parametrize("is_first", [True, False])
def test_an_answer_before_the_first_change_names_its_files(
    world: World, git: Git, *, is_first: bool
) -> None:
    head = begin_project(world, git)
    thread = world.begun(DEMO, "human" if is_first else "nobody", "checker=human")
    if not is_first:
        world.step(thread)
    world.step(thread)
    (world.place / "new").write_text("mine\n")
    world.answer(thread, PersonAnswer({"text": "x"} if is_first else {"ok": False}))
    named = files_of(world, thread)
    assert named[0] == head
    assert git("diff", "--name-only", *named, cwd=world.place) == "new\n"


def test_a_failed_attempt_names_its_files(world: World, git: Git, fresh: ThreadId) -> None:
    failed = world.fail(fresh, edits(lambda place: (place / "half").touch(), fails=True))
    commit = world.tip(fresh)
    assert f"`uwf thread files {fresh} {commit[:12]}`" in str(failed.hint)
    assert git("diff", "--name-only", *files_of(world, fresh), cwd=world.place) == "half\n"
    events = EventReader(world.store, EventOptions()).read(commit)
    [told] = [event["payload"] for event in events if event["type"] == "node:exit"]
    assert told["files"] == "..".join(files_of(world, fresh))


def test_what_an_agent_committed_is_kept(world: World, git: Git, fresh: ThreadId) -> None:

    def commit(place: Path) -> None:
        (place / "done").touch()
        commit_all(place, git)

    world.step(fresh, edits(commit))
    made = git("rev-parse", "HEAD", cwd=world.place).strip()
    git("reset", "--quiet", "--hard", "HEAD^", cwd=world.place)
    assert fresh in git("for-each-ref", "--contains", made, "refs/uwf/work", cwd=world.place)


def test_no_failure_of_recording_fails_the_turn(
    world: World, monkeypatch: pytest.MonkeyPatch, fresh: ThreadId
) -> None:
    path = "uwf_git.commands.worktree.chain.commit_tree"

    def refuse(*_words: object) -> str:
        raise ProgramFailed("git", "is ill")

    with monkeypatch.context() as patched:
        patched.setattr(path, refuse)
        world.step(fresh, edits(lambda place: (place / "new").touch()))
    assert files_of(world, fresh) == []
    [warning] = warn_of_files(world.store)
    assert fresh in warning
    assert "git is ill" in warning
    assert warn_of_files(world.store) == []


def test_a_project_that_is_slow_to_record_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch, fresh: ThreadId
) -> None:
    monkeypatch.setattr("uwf_git.commands.step.ending._SLOW_S", 0)
    for _ in range(2):
        world.step(fresh, edits(lambda place: (place / "new").touch()))
    [warning] = warn_of_files(world.store)
    assert fresh in warning
    assert "uwf.recordFiles" in warning


def test_the_setting_turns_recording_off(world: World, fresh: ThreadId) -> None:
    world.configure("uwf.recordFiles", "false")
    world.step(fresh, edits(lambda place: (place / "new").touch()))
    assert files_of(world, fresh) == []
