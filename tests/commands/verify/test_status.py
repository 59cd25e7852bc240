"""Threads that were steered, and the signals that they must hold."""

import pytest
from commands.forging import commits_of, forge, holds, messages, place, says, tip_of
from commands.world import World, content_player

from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.making import check_person
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Waiting
from uwf_git.store.threads.history import read_snapshot, read_standing

SOON_MS = 1_760_000_100_000


def steered(world: World) -> ThreadId:
    """Start a thread, and do to it all that can be done by hand.

    The commits: 0 start, 1 step, 2 poke, 3 step, 4 attempt (failed), 5 patch, 6 pause, 7 resume,
    8 retry, 9 pause, 10 step, 11 resume.
    """
    thread = world.stepped()
    world.poke(thread, hint="shorter")
    world.step(thread)
    world.fail(thread)
    world.patch(thread, {"a": 1}, reason="by hand")
    world.pause(thread, reason="wait")
    world.resume(thread)
    world.retry(thread, hint="look again")

    def play(turn: Turn) -> Played:
        world.pause(thread)
        return content_player(turn)

    world.step(thread, play)
    world.resume(thread)
    return thread


FAILED, READY, PAUSED = (f"Uwf-Status: {each}" for each in ("failed", "ready", "paused"))


@pytest.mark.parametrize(
    ("number", "event"), [(2, "poke"), (5, "patch"), (6, "pause"), (7, "resume"), (8, "retry")]
)
def test_signal_that_is_missing_is_reported(number: int, event: str, world: World) -> None:
    thread = steered(world)
    ref = f"refs/threads/{thread}"
    commits = commits_of(world.store, tip_of(world.store, ref))
    signal = read_snapshot(world.store, commits[number].id.decode()).record.cause  # type: ignore[arg-type]  # an id
    assert signal is not None

    tip = tip_of(world.store, ref)
    oids = forge(world.store, ref, {number: says(f"Uwf-Cause: {signal}\n", "")})
    assert f"{event} has no Uwf-Cause" in messages(world)

    world.store.refs.advance(ref, seen=oids[-1], to=tip)
    forge(world.store, ref, {number: holds(world.store, place(signal), None)})
    assert f"Uwf-Cause is {signal}, which is not in the commit" in messages(world)


def test_signal_that_asks_for_something_else_is_reported(world: World) -> None:
    thread = steered(world)
    ref = f"refs/threads/{thread}"
    commits = commits_of(world.store, tip_of(world.store, ref))
    pause, resume = (
        read_snapshot(world.store, commits[number].id.decode()).record.cause  # type: ignore[arg-type]  # an id
        for number in (6, 7)
    )

    forge(world.store, ref, {7: says(f"Uwf-Cause: {resume}", f"Uwf-Cause: {pause}")})

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
