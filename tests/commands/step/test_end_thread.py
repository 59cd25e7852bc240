import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from commands.worktree.project import PAIR, Git, begin_project, children, writer
from commands.world import World

from uwf_git.commands.admin import gc_store
from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.turn.branches import ThreadNotActive, read_active
from uwf_git.commands.worktree import worktrees
from uwf_git.commands.worktree.record import Worktree, list_worktrees, write_worktree
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store


def left_behind(world: World, thread: str) -> list[str]:
    """List the local files of a thread."""
    return [
        os.path.join(folder, name)
        for folder, folders, files in os.walk(world.store.path)
        for name in (*folders, *files)
        if thread in name and "refs" not in folder
    ]


def test_end_of_a_thread_leaves_nothing_on_this_machine(world: World) -> None:
    thread = world.begun()
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


def split(world: World) -> tuple[ThreadId, list[ThreadId]]:
    """Return a thread whose branches work apart."""
    thread = world.begun(PAIR)
    world.step(thread)
    return thread, children(world.snapshot(thread))


def left(world: World, thread: ThreadId) -> list[str]:
    return [each.path for each in list_worktrees(world.store, thread) if not each.is_removed]


def test_half_of_a_worktree_never_replaces_the_work(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_project(world, git)
    thread, (one, _) = split(world)
    world.step(thread, writer())

    def kill() -> None:
        world.kill(one, reason="enough")

    dies(monkeypatch, kill, in_record=False)
    gc_store(world.store, world.caller.environ)

    assert git("show", f"refs/uwf/work/{one}:notes", cwd=world.place) == "begun\none\n"
    assert [each.thread for each in list_worktrees(world.store, thread) if each.is_removed] == [one]


@pytest.mark.parametrize("is_of_thread", [True, False])
def test_a_record_that_a_kill_left_is_mended_by_a_kill_of_the_thread(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch, *, is_of_thread: bool
) -> None:
    begin_project(world, git)
    thread, (one, two) = split(world)
    world.step(thread, writer())
    world.kill(two, reason="enough")

    def kill(thread: ThreadId) -> None:
        world.kill(thread, reason="enough")

    dies(monkeypatch, lambda: kill(thread if is_of_thread else one), in_record=True)
    assert len(left(world, thread)) == 1
    with suppress(ThreadNotActive):
        kill(thread)

    assert left(world, thread) == []


def test_a_folder_that_a_record_names_is_not_removed(
    world: World, git: Git, tmp_path: Path
) -> None:
    """An agent may write the record where the store is the project's own repository."""
    begin_project(world, git)
    thread, _ = split(world)
    world.step(thread, writer())
    precious = tmp_path / "precious"
    precious.mkdir()
    for each in list_worktrees(world.store, thread):
        write_worktree(world.store, each._replace(path=str(precious), workdir=str(precious)))

    world.kill(thread, reason="enough")
    gc_store(world.store, world.caller.environ)

    assert precious.is_dir()
