from typing import Any

import pytest
from commands.world import World, fails, says

from uwf_git.commands.control.steer import patch_thread, pause_thread, resume_thread
from uwf_git.commands.events.commit_events import EventOptions, EventReader
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.model.names import ThreadId

PLAIN = EventOptions()


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


def told(world: World, thread: ThreadId, options: EventOptions = PLAIN) -> list[dict[str, Any]]:
    """Return the events of the newest transition."""
    return EventReader(world.store, options).read(world.snapshot(thread).commit.oid)


def test_step_has_the_events_of_its_turn(world: World, thread: ThreadId) -> None:
    base = world.snapshot(thread).commit.oid
    world.step(thread, says({"text": "x"}))
    commit = world.snapshot(thread).commit.oid

    events = told(world, thread)

    assert [event["id"] for event in events] == [
        f"{base}-enter",
        f"{commit}-exit",
        f"{commit}-progress",
    ]
    assert [event["timestamp"] - events[0]["timestamp"] for event in events] == [0, 1500, 1500]
    assert {event["payload"]["nodeId"] for event in events} == {"writer"}
    assert {event["payload"]["iteration"] for event in events} == {1}
    assert events[0]["depth"] == 0
    assert events[1]["depth"] == 1


def test_attempt_has_its_error(world: World, thread: ThreadId) -> None:
    with pytest.raises(Exception, match="exit status 7"):
        world.step(thread, fails(exit_code=7))

    enter, leave, last = told(world, thread)

    assert (enter["attempt"], leave["attempt"], leave["status"]) == (1, 1, "failed")
    assert leave["payload"]["error"] == "exit status 7"
    assert last["type"] == "workflow:error"
    assert last["payload"]["errorKind"] == "exited"
    assert last["payload"]["exitCode"] == 7


def test_attempt_with_tries_left_is_progress(world: World, thread: ThreadId, git: Any) -> None:
    git("config", "uwf.retries", "1", cwd=world.store.path)
    world.reopen()
    for kind in ("workflow:progress", "workflow:error"):
        with pytest.raises(Exception, match="exit status 7"):
            world.step(thread, fails())
        assert told(world, thread)[-1]["type"] == kind
    assert told(world, thread)[0]["attempt"] == 2


def test_control_events_have_reason_and_action(world: World, thread: ThreadId) -> None:
    pause_thread(world.store, world.caller, thread, reason="lunch")
    (paused,) = told(world, thread)
    resume_thread(world.store, world.caller, thread)
    (resumed,) = told(world, thread)
    patch_thread(world.store, world.caller, thread, {"budget": 3, "a": None})
    (patched,) = told(world, thread)

    assert paused["type"] == resumed["type"] == patched["type"] == "workflow:progress"
    assert (paused["event"], paused["status"], paused["reason"]) == ("pause", "paused", "lunch")
    assert resumed["payload"]["action"] == "resume"
    assert patched["payload"] == {"action": "patch", "patched": ["a", "budget"]}


def test_turn_that_was_steered_meanwhile_entered_where_it_began(
    world: World, thread: ThreadId
) -> None:
    base = world.snapshot(thread).commit.oid
    patch_thread(world.store, world.caller, thread, {"n": 1})
    world.step(thread, says({"text": "x"}))

    assert told(world, thread)[0]["id"] == f"{base}-enter"


def test_question_enters_and_its_answer_leaves(world: World, thread: ThreadId) -> None:
    from uwf_git.commands.control.answer import (  # noqa: PLC0415 (for this test alone)
        PersonAnswer,
        answer_thread,
        read_question,
    )

    asked = world.start("human", workflow="demo")
    world.step(asked)
    wait = told(world, asked)
    question = read_question(world.store, world.caller, asked)
    answer_thread(world.store, world.caller, question, PersonAnswer({"text": "x"}))

    assert [event["type"] for event in wait] == ["node:enter", "workflow:progress"]
    assert wait[1]["payload"]["question"] == "Write."
    assert wait[1]["status"] == "waiting"
    answer = told(world, asked)
    assert [event["type"] for event in answer] == ["node:exit", "workflow:progress"]
    assert answer[0]["event"] == "answer"
    assert answer[0]["payload"]["nodeId"] == "writer"


def test_end_comes_not_before_the_last_step(world: World, thread: ThreadId) -> None:
    times = []
    while world.step(thread).status != "completed":
        times.append(told(world, thread)[-1]["timestamp"])
    (end,) = told(world, thread)

    assert (end["type"], end["status"]) == ("workflow:complete", "completed")
    assert sorted([*times, end["timestamp"]]) == [*times, end["timestamp"]]


def test_fork_begins_and_says_from_where(world: World, thread: ThreadId) -> None:
    world.step(thread)
    request = ForkRequest(thread, reason="another way")
    fork = fork_thread(world.store, world.caller, request, thread=world.new_id())

    (event,) = told(world, fork.thread)

    assert (event["type"], event["event"]) == ("workflow:start", "fork")
    assert (event["forkedFrom"], event["reason"]) == (thread, "another way")


def test_state_is_included_only_on_request(world: World, thread: ThreadId) -> None:
    patch_thread(world.store, world.caller, thread, {"key": "AKIA" + "A1B2" * 4})

    (asked,) = told(world, thread, EventOptions(with_state=True))

    assert asked["payload"]["state"] == {"key": "[masked]"}
    assert "state" not in told(world, thread)[0]["payload"]
