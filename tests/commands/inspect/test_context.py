from typing import Any

import pytest
from commands.world import DEMO, World, content_player, fails, says
from refusing import refuses

from uwf_git.commands.control.steer import patch_thread, pause_thread
from uwf_git.commands.inspect.context import get_context, get_past_context
from uwf_git.commands.lifecycle.fork import find_fork_point
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.store.threads.heads import get_head


def test_first_turn_has_the_task_and_the_role(world: World) -> None:
    thread = world.begun()
    record = world.snapshot(thread).record

    context = get_context(world.store, thread)

    assert list(context) == [
        "thread", "workflow", "role", "start", "steps", "head", "depth", "visit", "attempt",
        "lastError", "state", "hint", "workdir",
    ]  # fmt: skip
    assert context["thread"] == thread
    assert context["workflow"] == {
        "hash": record.workflow,
        "name": "demo",
        "description": "Write until somebody is content.",
    }
    assert context["role"]["name"] == "writer"
    assert context["role"]["systemPrompt"] == "Write."
    assert context["role"]["outputSchema"]["required"] == ["text"]
    assert "extractPrompt" not in context["role"]
    assert (context["start"]["prompt"], context["start"]["hash"]) == ("Do it.", record.node)
    assert (context["head"], context["depth"], context["steps"]) == (record.node, 0, [])
    assert (context["visit"], context["attempt"], context["lastError"]) == (1, 1, None)
    assert (context["state"], context["hint"]) == ({}, None)
    assert context["workdir"] == str(world.place)


def test_later_turn_has_the_steps_before_it(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, "the text", state={"round": 1}))

    context = get_context(world.store, thread)

    step = context["steps"][0]
    assert context["role"]["extractPrompt"] == "Is it good?"
    assert {name: step[name] for name in ("role", "meta", "content", "agent")} == {
        "role": "writer",
        "meta": {"text": "x"},
        "content": "the text",
        "agent": "nobody",
    }
    assert step["hash"] == context["head"]
    assert context["state"] == {"round": 1}


def test_thread_at_its_end_has_no_turn(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    world.step(thread)

    with refuses("not-its-turn", match="has no turn left"):
        get_context(world.store, thread)


def test_thread_that_takes_no_step_now_has_a_context_all_the_same(world: World) -> None:
    thread = world.start("human", workflow=world.put().workflow)
    ready = get_context(world.store, thread)

    world.step(thread)
    assert world.snapshot(thread).record.status == "waiting"
    assert get_context(world.store, thread) == ready

    pause_thread(world.store, world.caller, thread)
    patch_thread(world.store, world.caller, thread, {"draft": 2})
    assert get_context(world.store, thread) == {**ready, "state": {"draft": 2}}


def test_context_of_a_past_step_is_what_its_agent_was_given(world: World) -> None:
    thread = world.begun(DEMO + "initialState: {level: 1}\n")
    given: list[dict[str, Any]] = []

    def play(turn: Turn) -> Played:
        given.append(get_context(turn.store, turn.thread))
        # It came while the agent worked, and after it began by the clock.
        patch_thread(world.store, world.caller, thread, {"level": 2})
        started = world.snapshot(thread).commit.time_s * 1000 - 1000
        return content_player(turn)._replace(started_ms=started)

    first = world.step(thread, play)
    with pytest.raises(TurnFailed):
        world.step(thread, fails("no key"))
    tried = world.snapshot(thread).commit.oid
    world.step(thread)
    world.step(thread)
    head = get_head(world.store, thread)
    assert head.archived

    past = get_past_context(world.store, find_fork_point(world.store, head, "1"))

    assert past == given[0] | {"workdir": None}
    assert past["state"] == {"level": 1}
    attempt = get_past_context(world.store, find_fork_point(world.store, head, tried))
    assert (attempt["role"]["name"], attempt["attempt"]) == ("checker", 1)
    checked = get_past_context(world.store, find_fork_point(world.store, head, "2"))
    assert (checked["head"], checked["attempt"]) == (first.head, 2)
    assert checked["lastError"]["message"] == "no key"


def test_commit_that_no_agent_made_has_no_context(world: World) -> None:
    thread = world.begun()
    snapshot = world.snapshot(thread)

    with refuses("no-turn-there", match="is a start"):
        get_past_context(world.store, snapshot)
