from typing import Any

import pytest
from commands.forging import messages
from commands.world import World, content_player, fails

from uwf_git.agents.request import DEFAULT_GRACE_S
from uwf_git.commands.control.steer import kill_thread, pause_thread
from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.store.threads.heads import NoSuchThread
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.lock import ThreadBusy, lock_stop


def test_unknown_thread_cannot_be_killed(world: World) -> None:
    with pytest.raises(NoSuchThread):
        kill_thread(world.store, world.caller, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_thread_whose_engine_does_not_end_is_not_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """test_stop_agent.py tests which processes a kill ends, and how."""
    thread = world.begun()
    monkeypatch.setattr("uwf_git.commands.agent_run.runs._PATIENCE_S", -DEFAULT_GRACE_S)

    def play(turn: Turn) -> Played:
        with pytest.raises(ThreadBusy):
            kill_thread(world.store, world.caller, thread)
        return content_player(turn)

    assert world.step(thread, play).status == "ready"
    kill_thread(world.store, world.caller, thread)


def test_thread_that_is_steered_meanwhile_is_killed_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = world.begun()
    steered: list[str] = []

    def end(*args: Any, **said: Any) -> Any:
        if not steered:
            steered.append(pause_thread(world.store, world.caller, thread).status)
        return end_thread(*args, **said)

    monkeypatch.setattr("uwf_git.commands.step.ending.end_thread", end)

    kill_thread(world.store, world.caller, thread)

    assert steered == ["paused"]
    snapshot = world.snapshot(thread)
    assert snapshot.record.status == "killed"
    events = [each.record.event for each in walk_history(world.store, snapshot.commit.oid)]
    assert events == ["kill", "pause", "start"]


def test_paused_failed_and_waiting_threads_are_killed(world: World) -> None:
    threads = [world.begun(), world.start("human"), world.start()]
    pause_thread(world.store, world.caller, threads[0])
    world.step(threads[1])
    with pytest.raises(TurnFailed):
        world.step(threads[2], fails())
    assert [world.snapshot(each).record.status for each in threads] == [
        "paused",
        "waiting",
        "failed",
    ]

    for thread in threads:
        kill_thread(world.store, world.caller, thread)

    assert [world.snapshot(each).record.status for each in threads] == ["killed"] * 3
    assert messages(world) == []


def test_step_is_refused_while_its_thread_is_being_ended(world: World) -> None:
    thread = world.begun()

    with lock_stop(world.store, thread, since_ms=1):
        with pytest.raises(ThreadBusy) as caught:
            world.step(thread)
        with pytest.raises(ThreadBusy):
            kill_thread(world.store, world.caller, thread)

    assert "it is being ended" in str(caught.value.hint)
    assert world.step(thread).status == "ready"
