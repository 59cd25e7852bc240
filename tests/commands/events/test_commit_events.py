import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import World, fails, says

from uwf_git.commands.commit_events import EventOptions, EventReader, announce_events
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.trust import describe_command, trust_agents

PLAIN = EventOptions()


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


def told(world: World, thread: ThreadId, options: EventOptions = PLAIN) -> list[dict[str, Any]]:
    """Return the events of the newest transition."""
    return EventReader(world.store, options).read(world.tip(thread))


def test_step_has_the_events_of_its_turn(world: World, thread: ThreadId) -> None:
    base = world.tip(thread)
    world.step(thread, says({"text": "x"}))
    commit = world.tip(thread)

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


def test_control_events_have_reason_and_action(world: World, thread: ThreadId) -> None:
    world.pause(thread, reason="lunch")
    (paused,) = told(world, thread)
    world.resume(thread)
    (resumed,) = told(world, thread)
    world.patch(thread, {"budget": 3, "a": None})
    (patched,) = told(world, thread)

    assert paused["type"] == resumed["type"] == patched["type"] == "workflow:progress"
    assert (paused["event"], paused["status"], paused["reason"]) == ("pause", "paused", "lunch")
    assert resumed["payload"]["action"] == "resume"
    assert patched["payload"] == {"action": "patch", "patched": ["a", "budget"]}


def test_turn_that_was_steered_meanwhile_entered_where_it_began(
    world: World, thread: ThreadId
) -> None:
    base = world.tip(thread)
    world.patch(thread, {"n": 1})
    world.step(thread, says({"text": "x"}))

    assert told(world, thread)[0]["id"] == f"{base}-enter"


def test_question_enters_and_its_answer_leaves(world: World, thread: ThreadId) -> None:
    from uwf_git.commands.control.answer import (  # noqa: PLC0415 (for this test alone)
        PersonAnswer,
    )

    asked = world.start("human", workflow="demo")
    world.step(asked)
    wait = told(world, asked)
    world.answer(asked, PersonAnswer({"text": "x"}))

    assert [event["type"] for event in wait] == ["node:enter", "workflow:progress"]
    assert wait[1]["payload"]["question"] == "Write."
    assert wait[1]["status"] == "waiting"
    answer = told(world, asked)
    assert [event["type"] for event in answer] == ["node:exit", "workflow:progress"]
    assert answer[0]["event"] == "answer"
    assert answer[0]["payload"]["nodeId"] == "writer"


def test_state_is_included_only_on_request(world: World, thread: ThreadId) -> None:
    world.patch(thread, {"key": "AKIA" + "A1B2" * 4})

    (asked,) = told(world, thread, EventOptions(with_state=True))

    assert asked["payload"]["state"] == {"key": "[masked]"}
    assert "state" not in told(world, thread)[0]["payload"]


Heard = Callable[[], list[dict[str, Any]]]


def listen(world: World, command: str) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", command)
    listener = describe_command("uwf.onEvent", command)
    trust_agents(world.store, [listener], world.store.path)
    world.reopen()


@pytest.fixture
def heard(world: World) -> Heard:
    """Set a listener, and return a function that returns what it got."""
    listener = world.program('cat >>"$0.heard"', name="listener")
    listen(world, listener)
    path = Path(f"{listener}.heard")

    def read() -> list[dict[str, Any]]:
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    return read


def announce(world: World, **more: Any) -> str | None:
    return announce_events(world.store, world.caller.environ, **more)


def test_each_event_is_announced_once_and_in_order(world: World, heard: Heard) -> None:
    thread = world.begun()
    world.step(thread)

    assert announce(world) is None

    told = heard()
    assert [event["type"] for event in told] == [
        "workflow:start",
        "node:enter",
        "node:exit",
        "workflow:progress",
    ]
    assert {event["taskId"] for event in told} == {thread}
    assert announce(world) is None
    assert heard() == []


def test_transitions_of_other_processes_are_not_announced(world: World, heard: Heard) -> None:
    thread = world.begun()
    announce(world)
    heard()
    mine = world.store
    world.reopen()
    world.step(thread)

    assert announce_events(mine, os.environ) is None
    assert heard() == []


def test_key_is_masked(world: World, heard: Heard) -> None:
    thread = world.begun()
    environ = {**world.caller.environ, "MY_TOKEN": "Tr0ub4dor"}
    world.pause(thread, reason="sk-" + "x1" * 10 + " Tr0ub4dor")

    assert announce_events(world.store, environ) is None
    assert heard()[-1]["reason"] == "[masked] [masked]"


@pytest.mark.parametrize("command", ["/nowhere/listener", "'unclosed"])
def test_listener_that_cannot_be_run_is_one_line(world: World, command: str) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", command)
    listener = describe_command("uwf.onEvent", command)
    trust_agents(world.store, [listener], world.store.path)
    world.reopen()
    world.step(world.begun())

    problem = announce(world) or ""

    assert problem.startswith("uwf.onEvent: ")
    assert "\n" not in problem


def test_listener_that_hangs_is_ended_and_not_asked_again(world: World) -> None:
    listen(world, world.program('echo x >>"$0.heard"; sleep 60; :'))
    world.step(world.begun())

    problem = announce(world, timeout_s=0.3) or ""

    assert problem.endswith("was killed after 0.3 s; 3 more events were not announced")
    assert (world.place / "agent.heard").read_text() == "x\n"


def test_listener_that_git_config_set_in_the_store_waits_for_the_user(world: World) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    heard = Path(f"{listener}.heard")
    world.configure("uwf.onEvent", listener)
    world.begun()

    problem = announce(world)

    assert problem is not None
    assert f"this store's config names a command that is not trusted: {listener};" in problem
    assert not heard.exists()
    # An agent of the same words is no listener.
    trust_agents(world.store, [{"command": listener}], world.store.path)
    world.start()
    assert announce(world) is not None
    listen(world, listener)
    world.start()
    assert announce(world) is None
    assert heard.exists()


def test_listener_of_the_user_s_own_git_config_runs(world: World, git: Callable[..., str]) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    git("config", "--global", "uwf.onEvent", listener, cwd=world.place)
    world.reopen()
    world.begun()

    assert announce(world) is None
    assert Path(f"{listener}.heard").exists()
