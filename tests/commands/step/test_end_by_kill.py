"""A kill is finished by whoever records the agent, if the killer has ended with that agent."""

import os
from pathlib import Path

import pytest
from commands.at_work import BEGUN, SAY_PID, AtWork, at_work, newest_attempt, wait_for
from commands.world import World, content_player, fails

from uwf_git.commands.step.ending import end_by_kill, finish_kill
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    find_kill_request,
    lock_stop,
    write_kill_request,
)

REASON = "of no use\n\nAt all."
KILL = 'uwf thread kill "$UWF_THREAD_ID" -m "of no use" >killed 2>killer\n'
GO = "while [ ! -e go ]; do sleep 0.02; done\n"


pytestmark = pytest.mark.usefixtures("nobody_is_left")


def test_step_ends_a_thread_whose_killer_has_died(world: World, thread: ThreadId) -> None:
    write_kill_request(world.store, thread, REASON)

    with pytest.raises(ThreadNotActive):
        world.step(thread)

    snapshot = world.snapshot(thread)
    assert (snapshot.record.status, snapshot.body) == ("killed", REASON)
    assert world.events(thread) == ["start", "kill"]
    assert os.listdir(world.store.local_path("locks")) == ["init"]


def test_step_whose_agent_was_stopped_ends_the_thread(world: World, thread: ThreadId) -> None:
    def play(turn: Turn) -> Played:
        write_kill_request(world.store, thread, REASON)
        return fails("it was stopped: x", kind="interrupted", is_stopped=True)(turn)

    assert "the thread is being ended" in (world.fail(thread, play).hint or "")
    assert world.events(thread) == ["start", "attempt", "kill"]


def test_result_that_is_handed_in_at_the_end_is_recorded_first(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        write_kill_request(world.store, thread, REASON)
        return content_player(turn)

    assert world.step(thread, play).depth == 1
    assert world.events(thread) == ["start", "step", "kill"]


def test_kill_that_is_refused_is_withdrawn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = world.begun()

    monkeypatch.setattr("uwf_git.commands.step.ending._MOST_TRIES", 0)
    with pytest.raises(HeadMoved):
        end_by_kill(world.store, world.caller, thread, reason=REASON)

    assert find_kill_request(world.store, thread) is None
    assert world.step(thread).depth == 1


def test_killer_that_lives_keeps_its_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uwf_git.commands.step.ending._PATIENCE_S", 0)
    thread = world.begun()
    write_kill_request(world.store, thread, REASON)

    with lock_stop(world.store, thread, since_ms=1), pytest.raises(ThreadBusy):
        finish_kill(world.store, world.caller, thread)

    assert find_kill_request(world.store, thread) == REASON
    finish_kill(world.store, world.caller, thread)
    assert world.events(thread) == ["start", "kill"]


def steering(world: World, script: str, *, within: str) -> ThreadId:
    """Start a thread whose agent runs *script*; *within* is the adapter around the agent."""
    program = world.program(SAY_PID + script)
    return world.start(f"{within} {program}".strip(), workflow=world.put().workflow)


@pytest.mark.parametrize("within", ["", "uwf-shell"])
def test_agent_that_kills_its_own_thread_runs_once(within: str, world: World) -> None:
    thread = steering(world, KILL, within=within)

    engine = world.process("thread", "run", thread)
    out, err = engine.communicate(timeout=60)

    assert (engine.returncode, b'"stopped":"killed"' in out) == (1, True), err
    assert len((world.place / "pids").read_text().splitlines()) == 1
    world.reopen()
    assert world.events(thread) == ["start", "attempt", "kill"]
    assert world.snapshot(thread).body == "of no use"
    error = newest_attempt(world, thread)["error"]
    assert error == {"kind": "interrupted", "message": "it was stopped: of no use"}
    # Below an adapter, the killer ends with the command that it belongs to.
    assert bool((world.place / "killed").read_text()) == (not within)


def orphaned(world: World, *, within: str) -> AtWork:
    at = at_work(world, steering(world, BEGUN + GO + KILL, within=within))
    at.lose_engine()
    (world.place / "go").touch()
    return at


def test_agent_of_a_dead_engine_kills_its_thread(world: World) -> None:
    at = orphaned(world, within="")

    wait_for(Path(world.place / "killed"))

    assert at.snapshot().record.status == "killed"
    assert world.events(at.thread) == ["start", "attempt", "kill"]


def test_agent_of_a_dead_engine_below_an_adapter_has_its_thread_killed_by_the_next_step(
    world: World,
) -> None:
    at = orphaned(world, within="uwf-shell")
    [run] = Path(world.store.local_path("run", at.thread)).glob("*.alive")
    wait_for(run.with_suffix("") / "exit")

    with pytest.raises(ThreadNotActive):
        world.step(at.thread)

    assert world.events(at.thread) == ["start", "attempt", "kill"]
    at.world.assert_whole()


@pytest.mark.parametrize("within", ["", "uwf-shell"])
def test_agent_that_pauses_its_own_thread_at_once_runs_once(within: str, world: World) -> None:
    thread = steering(world, 'uwf thread pause "$UWF_THREAD_ID" --now >/dev/null', within=within)

    engine = world.process("thread", "run", thread)
    out, err = engine.communicate(timeout=60)

    assert (engine.returncode, b'"stopped":"paused"' in out) == (0, True), err
    assert len((world.place / "pids").read_text().splitlines()) == 1
    world.reopen()
    assert world.events(thread) == ["start", "pause", "attempt"]
