from pathlib import Path

import pytest
from commands.world import World, content_player, fails, says

from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect.list import (
    ListRequest,
    Summary,
    list_lately_ended,
    list_thread_rows,
    summarize_thread,
)
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.lock import lock_thread


def summary(world: World, thread: str) -> Summary:
    rows = list_thread_rows(world.store, ListRequest(archived=True))
    (row,) = [row for row in rows if row["thread"] == thread]
    return summarize_thread(world.store, row)


def test_last_is_the_newest_event_and_of_a_try_why_it_failed(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}))
    assert summary(world, thread).last == "writer: What was said."

    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    assert summary(world, thread).last == "checker: exit status 7"


def test_end_says_the_step_before_it_and_a_kill_its_reason(world: World) -> None:
    ended, killed, silent = world.begun(), world.begun(), world.begun()
    for _ in range(3):
        world.step(ended, content_player)
    kill_thread(world.store, world.caller, killed, reason="not needed\nany more")
    kill_thread(world.store, world.caller, silent)

    assert summary(world, ended).last == "checker: What was said."
    assert summary(world, killed).last == "not needed"
    assert summary(world, silent).last == "start: Do it."


def test_who_is_at_work_is_said(world: World) -> None:
    thread = world.begun()

    with lock_thread(world.store, ThreadId(thread), since_ms=1) as lock:
        lock.say("writer", "uwf-mock")
        assert summary(world, thread).last == "writer at work"


def test_damaged_thread_says_its_damage(world: World) -> None:
    thread = world.begun()
    Path(f"{world.store.path}/refs/threads/{thread}").write_text("garbage\n")

    assert summary(world, thread).task is None
    assert "does not hold an object id" in (summary(world, thread).last or "")


def test_lately_ended_ones_are_found_by_their_end(world: World) -> None:
    old = world.begun()
    # Of the time of the clock; other ids of tests are a year older.
    world.new_id = lambda: ThreadId("01K742SG000000000000000001")
    ended = world.begun()
    kill_thread(world.store, world.caller, old)
    kill_thread(world.store, world.caller, ended)
    end_ms = list_thread_rows(world.store, ListRequest(archived=True))[0]["lastUpdateTime"]

    def found(after_ms: int) -> list[str]:
        rows = list_lately_ended(world.store, after_ms=after_ms, limit=9)
        return [row["thread"] for row in rows]

    assert found(end_ms) == [ended]
    assert found(end_ms + 1) == []


def test_role_of_a_person_that_is_not_described_is_waited_for(world: World) -> None:
    flow = "name: ask\ndescription: Ask.\nroot: {type: agent, agentId: judge}\n"
    thread = world.start("human", workflow=world.put(flow).workflow)
    world.step(thread)

    assert summary(world, thread).last == "judge waits for a person"
