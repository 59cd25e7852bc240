"""Signals that ask for something else, and who may answer what a person was asked."""

from commands.forging import forge, messages, says
from commands.world import World

from uwf_git.commands.verify.making import check_person
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Waiting
from uwf_git.store.threads.history import read_standing

SOON_MS = 1_760_000_100_000


def test_signal_that_asks_for_something_else_is_reported(world: World, thread: ThreadId) -> None:
    world.pause(thread)
    pause = world.snapshot(thread).record.cause
    world.resume(thread)
    resume = world.snapshot(thread).record.cause

    ref = f"refs/threads/{thread}"
    forge(world.store, ref, {-1: says(f"Uwf-Cause: {resume}", f"Uwf-Cause: {pause}")})

    assert f"Uwf-Event is resume, and {pause} asks for pause" in messages(world)


def test_step_of_an_agent_is_no_answer_of_a_person(world: World) -> None:
    thread = world.start("human", workflow=world.put().workflow)
    world.step(thread)
    asked = read_standing(world.snapshot(thread))

    for event in ("step", "attempt", "wait", "end", "resume"):
        assert list(check_person(asked, asked.record._replace(event=event))) == [
            f"Uwf-Event is {event}, and the thread waited for a person"
        ]
    limited = asked._replace(state=asked.state._replace(waiting=Waiting("writer", SOON_MS)))
    answer, step = (asked.record._replace(event=event) for event in ("answer", "step"))
    assert list(check_person(limited, answer)) == [
        "Uwf-Event is answer, and the thread did not wait for a person"
    ]
    assert list(check_person(asked, answer)) == list(check_person(limited, step)) == []
    assert list(check_person(asked, answer._replace(role="checker"))) == [
        "Uwf-Role is 'checker', and the thread waited for 'writer'"
    ]
