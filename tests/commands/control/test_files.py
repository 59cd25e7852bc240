"""The files of a step: shown, opened in a work tree, restored, taken along by a fork or a poke."""

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from commands.step.test_ending import edits, files_of, fresh, user_state
from commands.worktree.project import PAIR, begin_project, begin_split, children, commit_all, writer
from commands.world import DEMO, Git, World, read_thread, says
from conftest import Draws
from refusing import raising, refuses

from uwf_git.commands.after import warn_of_files
from uwf_git.commands.control import files
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.control.files import (
    find_files,
    fork_with_files,
    open_files,
    poke_with_files,
    read_patch,
    restore_files,
    take_files,
    view_files,
)
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import ForkRequest
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.commands.worktree.repository import Git as RepositoryGit
from uwf_git.commands.worktree.worktrees import ForgottenWork
from uwf_git.errors import Conflict, StoreFailed
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.store import open_store
from uwf_git.store.threads.history import Snapshot
from uwf_git.store.threads.local_files import (
    files_heads,
    find_workdir,
    lock_thread,
    set_workdir,
    workdirs_folder,
)

__all__ = ["fresh"]

NESTED = """\
name: nested
description: Branches of a branch work apart.
root:
  type: parallel
  nodes:
    - type: parallel
      isolation: worktree
      nodes:
        - {type: agent, agentId: one, output: first}
        - {type: agent, agentId: two, output: second}
    - {type: agent, agentId: three, output: third}
"""


def read_all(place: Path) -> dict[str, str]:
    """Return the content of each file below *place* that is not git's own."""
    found = (each for each in sorted(place.rglob("*")) if ".git" not in each.parts)
    return {str(each.relative_to(place)): each.read_text() for each in found if each.is_file()}


@pytest.fixture
def thread(world: World, fresh: ThreadId) -> ThreadId:
    """A thread whose steps 1 and 2 changed files, and whose step 3 changed none."""
    world.step(fresh, edits(lambda place: (place / "new").write_text("one\n")))

    def change(place: Path) -> None:
        (place / "new").write_text("two\n")
        (place / "notes").unlink()

    world.step(fresh, edits(change))
    world.step(fresh, says({"text": "nothing"}))
    return fresh


def changed(world: World, thread: ThreadId, step: str | None = None) -> list[str]:
    rows = view_files(find_files(world.store, world.caller.environ, thread, step))["changed"]
    return [f"{row['path']} +{row['added']} -{row['removed']}" for row in rows]


def test_what_each_step_and_the_whole_thread_changed(world: World, thread: ThreadId) -> None:
    assert changed(world, thread, "1") == ["new +1 -0"]
    assert changed(world, thread, "2") == ["new +1 -1", "notes +0 -1"]
    assert changed(world, thread, "3") == []
    assert changed(world, thread) == ["new +1 -0", "notes +0 -1"]
    patch = read_patch(find_files(world.store, world.caller.environ, thread, "2"), is_shown=True)
    assert b"-one\n+two\n" in patch


def test_the_files_of_an_ended_thread_that_wrote_no_byte_are_there(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(edits(lambda place: (place / "notes").unlink()))
    world.kill(thread)
    assert changed(world, thread, "1") == ["notes +0 -1"]


def test_failed_attempts_are_of_their_step_and_of_no_other(world: World, fresh: ThreadId) -> None:
    world.step(fresh, edits(lambda place: (place / "new").write_text("one\n")))
    (world.place / "mine").write_text("the user's\n")
    world.fail(fresh, edits(lambda place: (place / "notes").unlink(), fails=True))
    world.retry(fresh)
    world.fail(fresh, edits(lambda place: (place / "wrong").write_text("x\n"), fails=True))
    failed = world.tip(fresh)
    world.retry(fresh)
    world.step(fresh, says({"ok": False}))
    assert changed(world, fresh, "2") == ["notes +0 -1", "wrong +1 -0"]
    assert changed(world, fresh, failed) == ["wrong +1 -0"]
    fork = world.fork(fresh, failed)
    world.step(fork, edits(lambda place: (place / "new").unlink()))
    assert changed(world, fork, "2") == ["new +0 -1"]
    poke_with_files(world.store, world.caller, fresh)
    assert read_all(world.place).keys() == {".gitignore", "mine", "new", "notes", "part/deep"}


@pytest.mark.parametrize(
    ("is_committed", "rows"), [(False, ["new +1 -0"]), (True, ["half +1 -0", "new +1 -0"])]
)
def test_what_a_person_changed_between_two_attempts_is_of_no_step(
    world: World,
    git: Git,
    is_committed: bool,  # noqa: FBT001 (the value tested)
    rows: list[str],
) -> None:
    begin_project(world, git)
    thread = world.begun()
    world.fail(thread, edits(lambda place: (place / "half").write_text("x\n"), fails=True))
    if is_committed:
        commit_all(world.place, git)
    else:
        (world.place / "mine").write_text("the user's\n")
    world.retry(thread)
    world.step(thread, edits(lambda place: (place / "new").write_text("one\n")))
    assert changed(world, thread, "1") == rows


def test_steps_before_the_first_change_have_the_files_of_then(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(says({"text": "a plan"}))
    (world.place / "mine").touch()
    commit_all(world.place, git)
    world.step(thread, says({"ok": False}))
    (world.place / "untracked").touch()
    world.step(thread, edits(lambda place: (place / "new").write_text("one\n")))
    restore_files(world.store, world.caller, thread, "1")
    assert read_all(world.place).keys() == {".gitignore", "notes", "part/deep"}
    restore_files(world.store, world.caller, thread, "2")
    assert read_all(world.place).keys() == {".gitignore", "mine", "notes", "part/deep"}
    # As on another machine.
    os.remove(files_heads(world.store, thread))
    with refuses("no-files", match="not known here") as caught:
        restore_files(world.store, world.caller, thread, "1")
    assert f"{world.tip(thread)[:12]} --before`" in str(caught.value.hint)


def test_what_changed_nothing_has_the_files_of_the_step_before(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(edits(lambda place: (place / "new").write_text("one\n")))
    world.step(thread, says({"ok": False}))
    world.pause(thread)
    paused = world.tip(thread)
    world.resume(thread)
    world.step(thread, edits(lambda place: (place / "new").write_text("two\n")))
    for step in ("2", paused):
        restore_files(world.store, world.caller, thread, step)
        assert (world.place / "new").read_text() == "one\n"
    os.remove(files_heads(world.store, thread))
    restore_files(world.store, world.caller, thread, "0")
    assert not (world.place / "new").exists()


def test_a_thread_begins_with_the_files_that_its_first_turn_found(world: World, git: Git) -> None:
    begin_project(world, git)
    (world.place / "mine").touch()
    thread = world.stepped(says({"text": "a plan"}))
    (world.place / "mine").unlink()
    world.step(thread, edits(lambda place: (place / "new").touch()))
    restore_files(world.store, world.caller, thread, "0")
    assert read_all(world.place).keys() == {".gitignore", "mine", "notes", "part/deep"}


def test_a_plan_is_gone_back_to_and_forked_before_a_file_has_changed(
    world: World, git: Git, fresh: ThreadId, tmp_path: Path
) -> None:
    world.step(fresh, says({"text": "a plan"}))
    planned = read_all(world.place)
    (world.place / "mine").touch()
    commit_all(world.place, git)
    request, into = ForkRequest(fresh, "1"), tmp_path / "fork"
    fork_with_files(world.store, world.caller, request, thread=world.new_id(), into=str(into))
    restored = restore_files(world.store, world.caller, fresh, "1")
    assert read_all(into) == read_all(world.place) == planned
    restore_files(world.store, world.caller, fresh, restored.before)
    assert (world.place / "mine").exists()
    with refuses("no-files", match="how they were is not known here") as caught:
        restore_files(world.store, world.caller, world.fork(world.begun()), "0")
    assert "--full` has its steps" in str(caught.value.hint)


SHARED = PAIR.replace("isolation: worktree", "merge: last")


def join(world: World, source: str, play: Player) -> ThreadId:
    """Return a thread that began with branches, which are joined, and then waits for a person."""
    thread = world.begun(source, "nobody", "closer=human")
    while world.step(thread, play).status != "waiting":
        pass
    return thread


@pytest.mark.parametrize("is_committed", [False, True])
def test_what_branches_left_in_the_project_is_of_their_join(
    world: World,
    git: Git,
    is_committed: bool,  # noqa: FBT001 (the value tested)
) -> None:
    begin_project(world, git)
    if not is_committed:
        (world.place / "mine").touch()
    begun = read_all(world.place).keys()

    def play(turn: Turn) -> Played:
        played = writer()(turn)
        if is_committed and turn.role == "three":
            commit_all(world.place, git)
        return played

    thread = join(world, SHARED, play)
    world.answer(thread, PersonAnswer({}))
    assert changed(world, thread, "2") == []
    names = ["one.new", "three.new", "two.new"]
    rows = ["notes +3 -0", *(f"{name} +1 -0" for name in names)]
    assert changed(world, thread) == changed(world, thread, "1") == rows
    fork = world.fork(thread, "1")
    world.kill(thread)
    world.remove(thread)
    git("gc", "--quiet", "--prune=now", cwd=world.place)
    for step in ("0", "1"):
        restore_files(world.store, world.caller, fork, step)
        assert read_all(world.place).keys() == {*begun, *(names if step == "1" else ())}


def test_a_join_of_branches_that_worked_apart_changes_no_file(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = join(world, PAIR, writer())
    assert changed(world, thread, "1") == []
    world.answer(thread, PersonAnswer({}))
    assert changed(world, thread, "1") == []
    assert files_of(world, thread) == []


@pytest.mark.parametrize("source", [PAIR, SHARED])
def test_the_work_of_branches_stays_until_the_last_fork_that_joined_them_goes(
    world: World, git: Git, source: str
) -> None:
    begin_project(world, git)
    thread = join(world, source, writer())
    refs = partial(git, "for-each-ref", "--format=%(refname)", cwd=world.place)
    work = [each for each in refs("refs/uwf/work").split() if thread not in each]
    assert len(work) == 2
    first = world.fork(thread, "1")
    for gone in (thread, first, world.fork(first)):
        assert [each for each in work if refs(each)] == work
        world.kill(gone)
        world.remove(gone)
    assert refs("refs/uwf") == ""


def test_what_branches_left_unrecorded_is_refused(world: World, git: Git) -> None:
    begin_project(world, git)
    world.configure("uwf.recordFiles", "false")
    thread = join(world, SHARED, writer())
    with refuses("no-files", match="those of step 1 were not recorded"):
        restore_files(world.store, world.caller, thread, "1")


def test_a_file_with_a_key_of_a_branch_is_not_recorded_by_the_join(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_project(world, git)
    thread, environ = world.stepped(source=SHARED), cast("dict[str, str]", world.caller.environ)
    with monkeypatch.context() as patched:
        patched.setitem(environ, "MY_API_KEY", "0123456789abcdef")
        world.step(thread, edits(lambda place: (place / "new").write_text("0123456789abcdef")))
    # By a process that does not know the key.
    while world.step(thread, writer()).status == "split":
        pass
    assert changed(world, thread, "1") == ["notes +1 -0", "three.new +1 -0"]
    assert "0123456789abcdef" not in git("log", "--all", "-p", cwd=world.place)


def test_a_fork_has_the_steps_of_a_thread_that_only_read_and_has_ended(
    world: World, fresh: ThreadId
) -> None:
    world.step(fresh, says({"text": "a plan"}))
    fork = world.fork(fresh, "1")
    world.step(fork, edits(lambda place: (place / "new").touch()))
    world.kill(fresh)
    assert changed(world, fork, "1") == []


def test_a_fork_without_files_shows_the_steps_that_it_shares(
    world: World, git: Git, thread: ThreadId
) -> None:
    fork = world.fork(thread, "2")
    assert changed(world, fork, "1") == ["new +1 -0"]
    world.step(fork, edits(lambda place: (place / "more").write_text("two\n")))
    assert changed(world, fork, "2") == ["new +1 -1", "notes +0 -1"]
    assert changed(world, fork) == ["more +1 -0", "new +1 -0", "notes +0 -1"]
    restore_files(world.store, world.caller, fork, "1")
    assert (world.place / "new").read_text() == "one\n"


def test_files_that_a_fork_shares_outlive_the_thread_that_made_them(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    first = world.fork(thread, "2")
    fork = world.fork(first, "1")
    for gone in (thread, first):
        world.kill(gone)
        world.remove(gone)
    git("gc", "--quiet", "--prune=now", cwd=world.place)
    assert changed(world, fork, "1") == ["new +1 -0"]
    away = world.place.rename(tmp_path / "away")
    assert find_files(world.store, world.caller.environ, fork, "1", cwd=str(away)).step == 1
    away.rename(world.place)
    restore_files(world.store, world.caller, fork, "1")
    assert (world.place / "new").read_text() == "one\n"
    world.kill(fork)
    assert world.remove(fork)[0].work is not None
    assert git("for-each-ref", "refs/uwf", cwd=world.place) == ""


def test_what_is_there_when_a_fork_begins_is_no_change_of_a_person(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(DEMO, "nobody", "checker=human")
    world.step(thread, edits(lambda place: (place / "new").touch()))
    (world.place / "more").touch()
    fork = world.fork(thread)
    assert world.step(fork).status == "waiting"
    (world.place / "mine").touch()
    world.answer(fork, PersonAnswer({"ok": False}))
    assert changed(world, fork, "2") == ["mine +0 -0"]


def test_a_replaced_commit_is_read_as_it_was_recorded(
    world: World, git: Git, thread: ThreadId
) -> None:
    ref = f"refs/uwf/work/{thread}"
    git("replace", ref, f"{ref}~2", cwd=world.place)
    assert changed(world, thread, "2") == ["new +1 -1", "notes +0 -1"]


@pytest.mark.parametrize("makes", [True, False])
def test_a_step_that_was_not_recorded_is_refused_until_a_turn_is_recorded(
    world: World, thread: ThreadId, tmp_path: Path, *, makes: bool
) -> None:
    world.configure("uwf.recordFiles", "false")
    texts = iter(("four\n", "five\n") if makes else ("two\n", "two\n"))
    for _ in range(2):
        world.step(thread, edits(lambda place: (place / "new").write_text(next(texts))))
    now, commit = read_all(world.place), world.tip(thread)

    def fork(step: str) -> None:
        into, request = str(tmp_path / "fork"), ForkRequest(thread, step)
        fork_with_files(world.store, world.caller, request, thread=world.new_id(), into=into)

    for step in ("4", "5"):
        with refuses("no-files", match=f"those of step {step} were not recorded"):
            changed(world, thread, step)
        with refuses("no-files", match="were not recorded"):
            fork(step)
    with refuses("no-files", match="were not recorded"):
        poke_with_files(world.store, world.caller, thread)
    assert (read_all(world.place), world.tip(thread)) == (now, commit)

    world.configure("uwf.recordFiles", "true")
    world.step(thread, says({"ok": False}))
    assert changed(world, thread, "6") == changed(world, thread, "3") == []
    restore_files(world.store, world.caller, thread, "3")
    assert read_all(world.place)["new"] == "two\n"
    restore_files(world.store, world.caller, thread, "6")
    assert read_all(world.place) == now
    with refuses("no-files", match="were not recorded"):
        restore_files(world.store, world.caller, thread, "5")


def test_a_project_that_is_renamed_under_a_step_warns_and_hides_no_change(
    world: World, thread: ThreadId, tmp_path: Path
) -> None:
    (world.place / "more").touch()
    world.step(thread, edits(lambda place: place.rename(tmp_path / "renamed")))
    (tmp_path / "renamed").rename(world.place)
    assert "in no git repository any more" in warn_of_files(world.store)[0]
    with refuses("no-files", match="were not recorded"):
        restore_files(world.store, world.caller, thread, "4")


def test_a_project_that_git_does_not_open_is_told_once_and_keeps_no_thread_from_going(
    world: World, thread: ThreadId, git: Git
) -> None:
    git("config", "core.repositoryFormatVersion", "1", cwd=world.place)
    git("config", "extensions.unheardOf", "true", cwd=world.place)
    for count in (1, 0):
        world.step(thread)
        warnings = warn_of_files(world.store)
        assert len(warnings) == count
        assert all("unknown repository extension" in each for each in warnings)
    with refuses(StoreFailed, match="unknown repository extension"):
        changed(world, thread)
    world.assert_whole()
    world.remove(thread)


def test_the_work_directory_outlives_a_restore(world: World, fresh: ThreadId) -> None:
    inside = world.place / "inside"
    inside.mkdir()
    world.step(fresh, edits(lambda place: (place / "new").touch()), workdir=str(inside))
    restore_files(world.store, world.caller, fresh, "1", is_before=True)
    assert os.listdir(inside) == []


def test_a_store_that_was_cloned_restores_too(world: World, thread: ThreadId) -> None:
    # No thread has a work directory there.
    shutil.rmtree(workdirs_folder(world.store))
    world.reopen()
    restore_files(world.store, world.caller._replace(cwd=str(world.place)), thread, "1")
    assert (world.place / "new").read_text() == "one\n"


def test_what_was_given_up_is_of_no_later_step(world: World, git: Git) -> None:
    begin_project(world, git)
    given_up = "{type: sequential, onError: continue, nodes: [{type: agent, agentId: one}]}"
    nodes = f"[{given_up}, {{type: agent, agentId: two}}]"
    thread = world.begun(f"name: some\nroot: {{type: sequential, nodes: {nodes}}}\n")
    world.fail(thread, edits(lambda place: (place / "wrong").write_text("x\n"), fails=True))
    world.step(thread, edits(lambda place: (place / "new").write_text("one\n")))
    assert changed(world, thread, "1") == ["new +1 -0"]


def test_a_submodule_that_stays_is_told(world: World, git: Git, fresh: ThreadId) -> None:
    git("init", "--quiet", "lib", cwd=world.place)
    inner = world.place / "lib"
    git("commit", "--quiet", "--allow-empty", "-m", "one", cwd=inner)
    git("submodule", "--quiet", "add", "./lib", cwd=world.place)
    commit_all(world.place, git)
    more = ("commit", "--quiet", "--allow-empty", "-m", "two")
    world.step(fresh, edits(lambda _place: git(*more, cwd=inner)))
    assert changed(world, fresh, "1") == ["lib +1 -1"]
    restored = restore_files(world.store, world.caller, fresh, "1", is_before=True)
    assert view_files(restored)["leftOut"] == ["lib: git left it as it is"]


def test_a_file_in_no_commit_is_never_overwritten(world: World, git: Git, thread: ThreadId) -> None:
    # Ignored now, and in the way of what step 1 had.
    (world.place / ".git" / "info" / "exclude").write_text("new\n")
    (world.place / "new").unlink()
    world.step(thread, says({"ok": False}))
    (world.place / "new").write_text("precious\n")
    before = read_all(world.place)
    with refuses("not-restored"):
        restore_files(world.store, world.caller, thread, "1")
    assert read_all(world.place) == before


def test_an_agent_at_work_in_the_same_place_refuses_a_restore(
    world: World, thread: ThreadId
) -> None:
    with lock_thread(world.store, world.start(), since_ms=1), refuses("files-in-use") as caught:
        restore_files(world.store, world.caller, thread, "1")
    assert isinstance(caught.value, Conflict)


def test_files_of_a_project_that_was_renamed_are_found_in_it(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    world.kill(thread, reason="enough")
    place = world.place.rename(tmp_path / "renamed")
    with refuses("no-files", match="is gone"):
        restore_files(world.store, world.caller, thread, "1")
    caller = world.caller._replace(cwd=str(place))
    restore_files(world.store, caller, thread, "1")
    assert read_all(place)["new"] == "one\n"
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, caller, ForkRequest(thread, "2"), thread=new, into=into)
    (tmp_path / "fork" / "more").touch()
    world.step(new, says({"text": "three"}))
    take_files(world.store, caller, thread, new)
    assert (place / "more").exists()


def test_a_copy_of_a_project_that_is_its_own_store_changes_no_file_of_the_other(
    world: World, git: Git, tmp_path: Path
) -> None:
    begin_project(world, git)
    world.store = open_store(str(world.place), environ=world.caller.environ)
    thread = world.stepped(edits(lambda place: (place / "new").touch()))
    shutil.copytree(world.place, tmp_path / "copy")
    copy = open_store(str(tmp_path / "copy"), environ=world.caller.environ)
    with refuses("no-files", match="a copy of that"):
        restore_files(copy, world.caller, thread, "1", is_before=True)
    with refuses("no-files", match="a copy of that"):
        take_files(copy, world.caller, thread, thread)
    restore_files(world.store, world.caller, thread, "1", is_before=True)
    assert not (world.place / "new").exists()


def test_the_files_of_then_are_opened_in_a_work_tree(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    found = find_files(world.store, world.caller.environ, thread, "1")
    into = tmp_path / "then"
    open_files(found, found.after, str(into))
    assert read_all(into)["new"] == "one\n"
    assert git("status", "--short", cwd=into) == "?? new\n"
    with refuses("path-in-use"):
        open_files(found, found.after, str(into))
    # Each work tree of then is its own.
    git("commit", "--quiet", "--allow-empty", "-m", "work", cwd=into)
    head = git("rev-parse", "HEAD", cwd=into)
    open_files(found, found.after, str(tmp_path / "second"))
    assert git("rev-parse", "HEAD", cwd=into) == head


def test_a_thread_without_files_says_why(world: World, git: Git) -> None:
    thread = world.begun()
    with refuses("no-files") as caught:
        find_files(world.store, world.caller.environ, thread, None)
    assert "git init" in str(caught.value.hint)
    begin_project(world, git)
    with refuses("no-files", match="no step"):
        find_files(world.store, world.caller.environ, thread, None)
    world.step(thread, edits(lambda place: (place / "new").touch()))
    os.rename(world.place / ".git", world.place / "gone")
    git("init", "--quiet", cwd=world.place)
    with refuses("no-files", match="of the project"):
        find_files(world.store, world.caller.environ, thread, "1")


def test_a_commit_that_the_chain_does_not_reach_is_not_given(
    world: World, git: Git, thread: ThreadId
) -> None:
    ref = f"refs/uwf/work/{thread}"
    git("update-ref", ref, f"{ref}~1", cwd=world.place)
    assert changed(world, thread, "1") == ["new +1 -0"]
    with refuses("no-files", match=f"not in {ref} of the project"):
        find_files(world.store, world.caller.environ, thread, "2")


def test_an_ended_thread_outside_of_git_had_no_files(world: World) -> None:
    thread = world.stepped(says({"text": "x"}))
    world.kill(thread)

    with refuses("no-files", match="none were recorded") as caught:
        find_files(world.store, world.caller.environ, thread, None)

    assert "where the work directory is in a git repository" in str(caught.value.hint)


def test_readers_count_what_each_step_changed(world: World, thread: ThreadId) -> None:
    world.step(thread, edits(lambda place: (place / "new").write_text("four\nlines\n")))
    full = show_thread(world.store, thread, full=True)["steps"]
    assert [
        (each["files"]["added"], each["files"]["removed"]) for each in full if "files" in each
    ] == [(1, 0), (1, 2), (2, 1)]
    assert show_thread(world.store, thread)["step"]["files"]["changed"] == 1
    told = read_thread(world.store, thread)
    assert "1 file +1 -0" in told
    assert "2 files +1 -2" in told
    os.rename(world.place / ".git", world.place / "gone")
    assert "changed" not in show_thread(world.store, thread)["step"]["files"]
    assert "changed files" in read_thread(world.store, thread)


def test_a_repository_inside_is_never_removed_by_a_restore(world: World, git: Git) -> None:
    begin_project(world, git)
    inner = world.place / "sub"
    git("init", "--quiet", str(inner), cwd=world.place)
    git("commit", "--quiet", "--allow-empty", "-m", "inner", cwd=inner)
    commit_all(world.place, git)
    thread = world.begun()

    def replace(place: Path) -> None:
        inner.rename(place.parent / "kept")
        inner.write_text("a file now\n")

    world.step(thread, edits(replace))
    inner.unlink()
    (world.place.parent / "kept").rename(inner)
    (inner / "precious").touch()
    with refuses("not-restored"):
        restore_files(world.store, world.caller, thread, "1")
    assert (inner / ".git").is_dir()
    assert (inner / "precious").exists()


@pytest.mark.parametrize("is_recorded", [True, False])
def test_half_a_restore_says_so_and_how_to_undo_it(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch, *, is_recorded: bool
) -> None:
    run = RepositoryGit.run_guarded

    def half(self: RepositoryGit, *words: str) -> None:
        (world.place / "new").write_text("one\n")
        raise ProgramFailed("git", "is out of room")

    with monkeypatch.context() as patched:
        patched.setattr(RepositoryGit, "run_guarded", half)
        if not is_recorded:
            refuse = raising(ProgramFailed("git", "is ill"))
            patched.setattr("uwf_git.commands.worktree.chain.commit_tree", refuse)
        with refuses("restored-in-part") as caught:
            restore_files(world.store, world.caller, thread, "1")
    assert RepositoryGit.run_guarded is run
    restore_files(world.store, world.caller, thread, str(caught.value.facts["undo"]))
    assert (world.place / "new").read_text() == "two\n"


def test_a_restore_that_cannot_be_recorded_is_done_and_warns(
    world: World, thread: ThreadId
) -> None:
    lock = world.place / ".git" / "refs" / "uwf" / "work" / f"{thread}.lock"
    lock.touch()
    restored = restore_files(world.store, world.caller, thread, "1")
    assert (world.place / "new").read_text() == "one\n"
    assert f"{lock} is held by another git process" in warn_of_files(world.store)[0]
    with refuses("program-failed", match="is held by") as caught:
        restore_files(world.store, world.caller, thread, restored.before)
    assert "leftover" in str(caught.value.hint)
    lock.unlink()
    world.step(thread, edits(lambda place: (place / "new").write_text("four\n")))
    assert changed(world, thread, "4") == ["new +1 -1"]
    restore_files(world.store, world.caller, thread, restored.before)
    assert (world.place / "new").read_text() == "two\n"


@pytest.mark.parametrize("can_undo", [True, False])
def test_a_poke_that_a_full_disk_ends_gives_the_files_back_or_says_how(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch, *, can_undo: bool
) -> None:
    world.step(thread, edits(lambda place: (place / "new").write_text("three\n")))
    lock = world.place / ".git" / "refs" / "uwf" / "work" / f"{thread}.lock"

    def poke(*asked: Any, restore: Callable[[Snapshot], None], **_more: Any) -> None:
        if not can_undo:
            lock.touch()
        restore(world.snapshot(thread))
        raise OSError(28, "no space")

    monkeypatch.setattr(files, "poke_thread", poke)
    with pytest.raises((OSError, Conflict), match="no space") as caught:
        poke_with_files(world.store, world.caller, thread)
    lock.unlink(missing_ok=True)
    if isinstance(caught.value, Conflict):
        restore_files(world.store, world.caller, thread, str(caught.value.facts["undo"]))
    assert isinstance(caught.value, OSError) == can_undo
    assert (world.place / "new").read_text() == "three\n"


def test_a_fork_trusts_no_filter_that_an_agent_planted(
    world: World, git: Git, tmp_path: Path, fresh: ThreadId
) -> None:
    ran = tmp_path / "ran"

    def plant(place: Path) -> None:
        git("config", "filter.evil.clean", f"touch {ran}; cat", cwd=place)
        (place / ".gitattributes").write_text("* filter=evil\n")

    world.step(fresh, edits(plant))
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(fresh, "1"), thread=new, into=into)
    world.step(new, edits(lambda place: (place / "new").write_text("x")))
    assert files_of(world, new)
    assert not ran.exists()


def test_the_files_of_a_fork_whose_work_tree_is_gone_are_removed_with_it(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(thread), thread=new, into=into)
    world.kill(new, reason="enough")
    shutil.rmtree(into)

    (removed,) = world.remove(new)

    assert removed.work is not None
    assert git("for-each-ref", removed.work.ref, cwd=world.place) == ""


@pytest.mark.parametrize("is_moved", [False, True])
def test_files_in_two_projects_are_removed_from_both(
    world: World, git: Git, thread: ThreadId, tmp_path: Path, *, is_moved: bool
) -> None:
    git("init", "-q", tmp_path / "other", cwd=world.place)
    set_workdir(world.store, thread, str(tmp_path / "other"))
    world.step(thread, edits(lambda place: (place / "more").touch()))
    world.kill(thread, reason="enough")
    if is_moved:
        world.place.rename(tmp_path / "renamed")

    (removed,) = world.remove(thread)

    assert removed.work is not None
    works = (removed.work, *removed.work.others)
    places = [tmp_path / "other", world.place]
    assert [each.repository for each in works] == [str(each / ".git") for each in places]
    assert [each.commit is None for each in works] == [False, is_moved]
    there = places[: 1 if is_moved else 2]
    assert not any(git("for-each-ref", "refs/uwf", cwd=each) for each in there)


def test_files_that_are_not_found_are_told(world: World, thread: ThreadId, tmp_path: Path) -> None:
    world.kill(thread, reason="enough")
    began = str(world.place / ".git")
    world.place.rename(tmp_path / "renamed")

    (removed,) = world.remove(thread)

    assert removed.work == ForgottenWork(f"refs/uwf/work/{thread}", None, began)


def test_a_fork_begins_at_the_step_whose_files_it_has(
    world: World, thread: ThreadId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_late(*asked: Any) -> str:
        world.step(thread, edits(lambda place: (place / "new").write_text("three\n")))
        return open_files(*asked)

    monkeypatch.setattr(files, "open_files", open_late)
    new, into = world.new_id(), str(tmp_path / "fork")
    request = ForkRequest(thread)
    forked, _ = fork_with_files(world.store, world.caller, request, thread=new, into=into)

    assert forked.depth == 3
    assert (tmp_path / "fork" / "new").read_text() == "two\n"


def test_a_poke_that_a_pause_forestalls_gives_the_files_back(
    world: World, thread: ThreadId
) -> None:
    world.step(thread, edits(lambda place: (place / "new").write_text("three\n")))

    def pause_late() -> int:
        is_restored = (world.place / "new").read_text() == "two\n"
        if is_restored and world.snapshot(thread).record.status != "paused":
            world.pause(thread)
        return world.caller.now_ms()

    with refuses("wrong-status", match="is paused"):
        poke_with_files(world.store, world.caller._replace(now_ms=pause_late), thread)
    assert (world.place / "new").read_text() == "three\n"


def test_a_poke_whose_step_would_be_refused_leaves_the_files(
    world: World, thread: ThreadId
) -> None:
    world.step(thread, edits(lambda place: (place / "new").write_text("three\n")))
    world.amend(thread, limits={"maxSteps": 3})

    with refuses("limit-reached"):
        poke_with_files(world.store, world.caller, thread, retake=Choice())

    assert (world.place / "new").read_text() == "three\n"


def test_what_cannot_be_signed_leaves_all_files_as_they_are(
    world: World, thread: ThreadId, tmp_path: Path
) -> None:
    config = GitConfig({"commit.gpgsign": ["true"], "gpg.format": ["ssh"]})
    store = world.store._replace(config=config)
    world.step(thread, edits(lambda place: (place / "new").write_text("three\n")))
    after, into = read_all(world.place), tmp_path / "fork"

    with refuses("cannot-sign"):
        poke_with_files(store, world.caller, thread)
    with refuses("cannot-sign"):
        request = ForkRequest(thread, "1")
        fork_with_files(store, world.caller, request, thread=world.new_id(), into=str(into))

    assert read_all(world.place) == after
    assert not into.exists()


def split_and_write(world: World, git: Git, *, lines: tuple[str, str]) -> tuple[ThreadId, ...]:
    """Return a thread and its two branches, which wrote *lines* into `notes` of their own."""
    thread, branches = begin_split(world, git)
    world.step(thread, edits(lambda place: (place / "notes").write_text(lines[0])))
    for branch in branches:
        world.kill(branch, reason="enough")
    return thread, *branches


def test_the_files_of_a_winner_are_taken_and_given_back(world: World, git: Git) -> None:
    thread, one, _ = split_and_write(world, git, lines=("begun\nmore\n", ""))
    (world.place / "mine").write_text("by the user\n")
    state = user_state(world.place, git)
    assert changed(world, one) == ["notes +1 -0"]
    with refuses("no-files", match="is gone"):
        restore_files(world.store, world.caller, one, "1")
    taken = take_files(world.store, world.caller, thread, one)
    assert (world.place / "notes").read_text() == "begun\nmore\n"
    assert (world.place / "mine").read_text() == "by the user\n"
    assert user_state(world.place, git) == state
    restore_files(world.store, world.caller, thread, taken.before)
    assert (world.place / "notes").read_text() == "begun\n"


def test_the_rest_is_taken_and_after_an_undo_all_of_it(
    world: World, thread: ThreadId, tmp_path: Path
) -> None:
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(thread), thread=new, into=into)

    def write(*lines: str) -> str:
        world.step(new, edits(lambda place: (place / "long").write_text("\n".join(lines))))
        taken = take_files(world.store, world.caller, thread, new)
        assert (world.place / "long").read_text() == "\n".join(lines)
        return taken.before

    undo = write("one")
    write("one", "two")
    last = write("three")
    restore_files(world.store, world.caller, thread, last)
    write("four")
    restore_files(world.store, world.caller, thread, undo)
    write("five")
    # As git undoes it, while something else has changed.
    (world.place / "mine").touch()
    (world.place / "long").unlink()
    write("five", "six")


def test_what_a_fork_changes_back_is_taken_back(
    world: World, thread: ThreadId, tmp_path: Path
) -> None:
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(thread), thread=new, into=into)
    # The thread has had both.
    for text in ("one\n", "two\n"):
        (tmp_path / "fork" / "new").write_text(text)
        world.step(new, edits(lambda _place: None))
        take_files(world.store, world.caller, thread, new)
        assert (world.place / "new").read_text() == text


def test_what_came_since_is_taken_whoever_changed_what_was_taken(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    git("config", "grep.patternType", "fixed", cwd=world.place)
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(thread), thread=new, into=into)
    world.step(new, edits(lambda place: (place / "long").write_text("theirs\n")))
    take_files(world.store, world.caller, thread, new)
    (world.place / "long").write_text("ours\ntheirs\n")
    world.step(new, edits(lambda place: (place / "more").touch()))
    take_files(world.store, world.caller, thread, new)
    assert (world.place / "long").read_text() == "ours\ntheirs\n"
    assert (world.place / "more").exists()


def test_a_fork_in_another_place_has_not_removed_what_is_not_there(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git("worktree", "add", "--quiet", str(other), cwd=world.place)
    before = {each.name for each in world.place.iterdir()}
    fork = world.fork(thread, workdir=str(other))
    world.step(fork, edits(lambda place: (place / "own").touch()))
    take_files(world.store, world.caller, thread, fork)
    assert {each.name for each in world.place.iterdir()} == {*before, "own"}


COMMIT = "git add -A; git -c user.name=a -c user.email=b commit -qm mine"
MORE = {
    "an untracked file": "touch mine",
    "where git lists none": "git config status.showUntrackedFiles no; touch mine",
    "a file that git skips": "git update-index --skip-worktree part/deep; echo >> part/deep",
    "a changed submodule": "git clone -q $(git rev-parse --git-common-dir) inner; cd inner; "
    "git checkout -q HEAD^; touch mine",
    "commits of a submodule": "mkdir -p $(git rev-parse --git-dir)/modules/inner",
    "a commit": COMMIT,
    "a repository of its own": f"rm .git; git init -q; {COMMIT}",
    "the caller": "",
}


@pytest.mark.parametrize("more", [None, *MORE])
def test_the_work_tree_of_a_fork_goes_with_it_unless_it_has_what_is_not_recorded(
    world: World, git: Git, thread: ThreadId, more: str | None
) -> None:
    new = world.new_id()
    git("clone", "-q", ".", "inner", cwd=world.place)
    commit_all(world.place, git)
    world.step(thread, says({"ok": False}))
    request = ForkRequest(thread)
    _, path = fork_with_files(world.store, world.caller, request, thread=new, into=None)
    world.step(new, edits(lambda place: (place / "more").touch()))
    world.kill(new)
    Path(path, "ignored.tmp").touch()
    subprocess.run(["sh", "-ec", MORE.get(more or "", "")], check=True, cwd=path)
    world.caller = world.caller._replace(cwd=path if more == "the caller" else "/")

    (removed,) = world.remove(new)

    assert removed.place == (path if more else None)
    assert os.path.isdir(path) == bool(more)
    assert (path in git("worktree", "list", cwd=world.place)) == bool(more)


def test_what_another_thread_left_out_is_told_and_what_is_ignored_here_is_given_back(
    world: World, git: Git, thread: ThreadId, tmp_path: Path
) -> None:
    (world.place / ".git" / "info" / "exclude").write_text("built\n")
    new, into = world.new_id(), tmp_path / "fork"
    fork_with_files(world.store, world.caller, ForkRequest(thread), thread=new, into=str(into))

    def build(place: Path) -> None:
        (place / ".env").touch()
        (place / "built").touch()
        git("add", "--force", "built", cwd=place)

    world.step(new, edits(build))
    taken = take_files(world.store, world.caller, thread, new)
    assert view_files(taken)["leftOut"] == [".env: by its name a secret"]
    assert (world.place / "built").exists()
    restore_files(world.store, world.caller, thread, taken.before)
    assert not (world.place / "built").exists()


def test_a_fork_of_a_branch_whose_worktree_is_gone_works_in_its_own(
    world: World, git: Git, tmp_path: Path
) -> None:
    thread, one, _ = split_and_write(world, git, lines=("begun\nmore\n", ""))
    world.kill(thread, reason="enough")
    new, into = world.new_id(), str(tmp_path / "fork")
    fork_with_files(world.store, world.caller, ForkRequest(one, "1"), thread=new, into=into)
    assert find_workdir(world.store, new) == into


def test_the_work_of_a_branch_in_a_branch_is_there_when_all_have_ended(
    world: World, git: Git
) -> None:
    begin_project(world, git)
    thread = world.stepped(source=NESTED)
    inner, _ = children(world.snapshot(thread))
    world.step(inner)
    one, _ = children(world.snapshot(inner))
    world.step(one, edits(lambda place: (place / "notes").unlink()))
    world.kill(thread)
    assert changed(world, one) == ["notes +0 -1"]


def test_a_conflict_is_named_before_a_file_is_touched(world: World, git: Git) -> None:
    thread, one, _ = split_and_write(world, git, lines=("other\n", ""))
    (world.place / "notes").write_text("by the user\n")
    with refuses("files-conflict") as caught:
        take_files(world.store, world.caller, thread, one)
    assert caught.value.facts["paths"] == ["notes"]
    assert (world.place / "notes").read_text() == "by the user\n"


NAMES = ("a", "b", "a/a", "a/b", "b/a", "notes", "part", "part/deep", "é \n", "-x")
KINDS = ("gone", "link", "text", "text", "binary")


def edit_by_chance(place: Path, chance: Random) -> None:
    """Make files, folders, links and modes, under few names, so that one replaces another."""
    for _ in range(chance.randint(0, 5)):
        name = chance.choice(NAMES)
        path, above = place / name, place / name.partition("/")[0]
        for each in {path, above} if "/" in name else {path}:
            if each.is_symlink() or each.is_file():
                each.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = chance.choice(KINDS)
        if kind == "link":
            path.symlink_to(chance.choice(NAMES))
        elif kind != "gone":
            path.write_bytes(chance.randbytes(9) if kind == "binary" else b"line\n" * 3)
            path.chmod(chance.choice((0o644, 0o755)))


def describe_all(place: Path) -> dict[str, object]:
    """Return the content and the mode of each file, and where each link leads."""
    found: dict[str, object] = {}
    for each in place.rglob("*"):
        if ".git" in each.relative_to(place).parts:
            continue
        if each.is_symlink():
            found[str(each)] = each.readlink()
        elif each.is_file():
            found[str(each)] = (each.read_bytes(), each.stat().st_mode)
    return found


def test_any_edits_come_back_both_ways(world: World, git: Git, draws: Draws) -> None:
    begin_project(world, git)
    thread, chance = world.begun(), draws.chance
    kept = [describe_all(world.place)]
    for number in draws.rounds(6):
        edit_by_chance(world.place, chance)
        world.step(thread, edits(lambda place: edit_by_chance(place, chance)))
        kept.append(describe_all(world.place))
        assert number < len(kept)
    state = user_state(world.place, git)
    numbers = range(1, len(kept))
    for number in chance.sample(numbers, k=len(numbers)):
        restore_files(world.store, world.caller, thread, str(number))
        assert describe_all(world.place) == kept[number]
    assert user_state(world.place, git) == state
