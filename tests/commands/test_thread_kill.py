from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World, content_player

from uwf_git.commands.thread_errors import ThreadNotActive
from uwf_git.commands.thread_kill import kill_thread
from uwf_git.commands.thread_step import WorkKept
from uwf_git.commands.turn import Played, Turn
from uwf_git.store.heads import NoSuchThread, list_threads
from uwf_git.store.thread_lock import ThreadBusy


def test_killed_thread_is_archived_with_its_history(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    head = world.snapshot(thread).record.node

    killed = kill_thread(world.store, world.caller, thread[:26], reason="the issue was closed")

    snapshot = world.snapshot(thread)
    assert (killed.thread, killed.head) == (thread, head)
    assert list_threads(world.store, archived=True) == [thread]
    assert (snapshot.record.status, snapshot.record.node) == ("killed", head)
    assert (snapshot.subject, snapshot.body) == (
        "kill: killed after 1 step",
        "the issue was closed",
    )


def test_killed_thread_cannot_be_killed_or_stepped_again(world: World) -> None:
    thread = world.begun()
    kill_thread(world.store, world.caller, thread)

    with pytest.raises(ThreadNotActive):
        kill_thread(world.store, world.caller, thread)
    with pytest.raises(ThreadNotActive):
        world.step(thread)


def test_unknown_thread_cannot_be_killed(world: World) -> None:
    with pytest.raises(NoSuchThread):
        kill_thread(world.store, world.caller, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_thread_at_work_cannot_be_killed(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        with pytest.raises(ThreadBusy):
            kill_thread(world.store, world.caller, thread)
        return content_player(turn)

    assert world.step(thread, play).status == "ready"


def test_reason_is_never_a_trailer(world: World, git: Callable[..., str]) -> None:
    thread = world.begun()

    kill_thread(world.store, world.caller, thread, reason="x\n\nUwf-Status: ready\n")

    trailer = "%(trailers:key=Uwf-Status,valueonly)"
    shown = git(
        "log", "-1", f"--format={trailer}", f"refs/archive/{thread}", cwd=Path(world.store.path)
    )
    assert shown.split() == ["killed"]


def test_step_of_a_thread_that_was_archived_meanwhile_is_not_recorded(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        # As a fetch would: without asking for the lock.
        oid = turn.snapshot.commit.oid
        assert world.store.refs.create(f"refs/archive/{thread}", oid)
        return content_player(turn)

    with pytest.raises(WorkKept):
        world.step(thread, play)

    assert world.snapshot(thread).record.depth == 0
