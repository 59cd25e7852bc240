import pytest
from commands.world import World, fails

from uwf_git.commands.control.steer import patch_thread, pause_thread, resume_thread
from uwf_git.commands.inspect.context import (
    find_since,
    first_question_line,
    view_question,
    view_waiting,
)
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import ThreadId

UNTIL_MS = 4_000_000_000_000


def waiting(world: World) -> ThreadId:
    world.put()
    thread = world.start("nobody", "checker=human")
    world.step(thread)
    world.step(thread)
    return thread


def test_question_has_all_that_an_agent_gets(world: World) -> None:
    thread = waiting(world)
    snapshot = world.snapshot(thread)

    question = view_question(snapshot, snapshot.get_present())

    assert question == {
        "role": "checker",
        "description": "Checks.",
        "systemPrompt": "Check.",
        "extractPrompt": "Is it good?",
        "fields": ["- `ok` (required): true or false"],
        "outputSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
        "task": "Do it.",
        "lastStep": {"hash": snapshot.record.node, "role": "writer", "said": "What was said."},
        "command": f"uwf thread answer {thread}",
    }
    assert first_question_line(snapshot, snapshot.get_present()) == "Checks."


def test_wait_began_before_the_thread_was_steered(world: World) -> None:
    thread = waiting(world)
    asked = world.snapshot(thread).commit.time_s * 1000
    patch_thread(world.store, world.caller, thread, {"a": 1})
    pause_thread(world.store, world.caller, thread)
    resume_thread(world.store, world.caller, thread)
    snapshot = world.snapshot(thread)

    assert snapshot.commit.time_s * 1000 > asked
    assert find_since(world.store, snapshot) == asked
    told = view_waiting(world.store, snapshot, snapshot.get_present())
    assert told == {"role": "checker", "since": asked}


def test_thread_that_waits_for_a_limit_has_no_question(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails("limit", left=StepFiles(reset_at=UNTIL_MS)))
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()

    told = view_waiting(world.store, snapshot, present)
    since = snapshot.commit.time_s * 1000
    assert told == {"role": "writer", "since": since, "until": UNTIL_MS}
    assert view_question(snapshot, present) is None
    assert first_question_line(snapshot, present) is None


def test_thread_that_does_not_wait_has_no_question(world: World) -> None:
    snapshot = world.snapshot(world.begun())
    present = snapshot.get_present()

    assert view_waiting(world.store, snapshot, present) is None
    assert view_question(snapshot, present) is None
    assert first_question_line(snapshot, present) is None
