"""Threads that were steered, and forged ones that say they were."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from commands.forging import (
    Change,
    also,
    commits_of,
    find_blob,
    forge,
    holds,
    messages,
    place,
    says,
    tip_of,
    troubles,
)
from commands.world import World, content_player, fails
from dulwich.objects import Blob

from uwf_git.commands.control.change_rules import poke_thread
from uwf_git.commands.control.steer import patch_thread, pause_thread, resume_thread, retry_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, StepFiles, Turn
from uwf_git.commands.verify.making import check_person
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Waiting
from uwf_git.store.git.config import set_config
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.threads.record import read_standing
from uwf_git.store.threads.snapshot import read_snapshot

SOON_MS = 1_760_000_100_000
NEVER_MS = 4_000_000_000_000


def fail(world: World, thread: ThreadId, **said: Any) -> None:
    with pytest.raises(TurnFailed):
        world.step(thread, fails(**said))


def steered(world: World) -> ThreadId:
    """Start a thread, and do to it all that can be done by hand.

    The commits: 0 start, 1 step, 2 poke, 3 step, 4 attempt (failed), 5 patch, 6 pause, 7 resume,
    8 retry, 9 pause, 10 step, 11 resume.
    """
    store, caller = world.store, world.caller
    thread = world.begun()
    world.step(thread)
    poke_thread(store, caller, thread, hint="shorter")
    world.step(thread)
    fail(world, thread)
    patch_thread(store, caller, thread, {"a": 1}, reason="by hand")
    pause_thread(store, caller, thread, reason="wait")
    resume_thread(store, caller, thread)
    retry_thread(store, caller, thread, hint="look again")

    def play(turn: Turn) -> Played:
        pause_thread(store, caller, thread)
        return content_player(turn)

    world.step(thread, play)
    resume_thread(store, caller, thread)
    return thread


def test_waits_and_what_ends_them_are_right(world: World) -> None:
    set_config(f"{world.store.path}/config", "uwf.retries", "1")
    world.reopen()
    store, caller = world.store, world.caller
    thread = world.start("human", workflow=world.put().workflow)
    world.step(thread)
    pause_thread(store, caller, thread)
    resume_thread(store, caller, thread)

    other = world.start()
    fail(world, other, left=StepFiles(reset_at=NEVER_MS))
    pause_thread(store, caller, other)
    resume_thread(store, caller, other)
    resume_thread(store, caller, other)
    fail(world, other, left=StepFiles(reset_at=world.caller.now_ms()))
    # Its limit is over; a person takes it from there.
    world.step(other, command="human")
    assert world.snapshot(other).record.event == "wait"

    third = world.start()
    fail(world, third, left=StepFiles(reset_at=world.caller.now_ms()))
    fail(world, third)
    fail(world, third, kind="interrupted")
    world.step(third)

    assert messages(world) == []


def now(**changes: Any) -> Callable[[World, ThreadId, int], Change]:
    """Change now.json of a commit; None takes away."""

    def change(world: World, thread: ThreadId, number: int) -> Change:
        tip = tip_of(world.store, f"refs/threads/{thread}")
        commit = commits_of(world.store, tip)[number]
        oid = commit.id.decode()
        blob = world.store.objects[find_blob(world.store, oid, "now.json")]  # type: ignore[arg-type]  # an id
        assert isinstance(blob, Blob)
        document = json.loads(blob.data) | changes
        document = {name: value for name, value in document.items() if value is not None}
        return holds(world.store, "now.json", encode_json(document))

    return change


def word(old: str, new: str) -> Callable[[World, ThreadId, int], Change]:
    """Change a word of the message of a commit."""
    return lambda _world, _thread, _number: says(old, new)


def both(*changes: Callable[[World, ThreadId, int], Change]) -> Any:
    """Do several changes to a commit."""
    return lambda world, thread, number: also(*(each(world, thread, number) for each in changes))


FAILED, READY, PAUSED = (f"Uwf-Status: {each}" for each in ("failed", "ready", "paused"))
FORGED = [
    (2, now(cursor={"role": "checker"}), "now.json says cursor"),
    (2, now(hint="something else"), "now.json says hint"),
    (2, now(hint=None), "now.json says hint nothing"),
    (2, now(state={"x": 1}), "now.json says state"),
    (2, word(READY, FAILED), "Uwf-Status is failed, and must be ready"),
    (2, word("Uwf-Depth: 0", "Uwf-Depth: 1"), "Uwf-Depth is 1, and must be 0"),
    (4, both(word(FAILED, READY), now(failures=None)), "now.json says failures nothing"),
    (4, word("Left: no", "Left: yes"), "Uwf-Status is failed, and must be ready"),
    (4, word("Uwf-Retries-Left: no\n", ""), "Uwf-Retries-Left is absent, and must be "),
    (4, word(FAILED, "Uwf-Status: waiting"), "Uwf-Status is waiting, and must be failed"),
    (5, word(FAILED, READY), "Uwf-Status is ready, and must be failed"),
    (5, now(state={"a": 2}), "now.json says state"),
    (6, now(pausedFrom="ready"), 'now.json says pausedFrom "ready"'),
    (6, now(pausedFrom=None), "now.json says pausedFrom nothing"),
    (6, word(PAUSED, READY), "Uwf-Status is ready"),
    (7, word(FAILED, READY), "Uwf-Status is ready, and must be failed"),
    (7, now(pausedFrom="failed"), 'now.json says pausedFrom "failed"'),
    (8, now(hint=None), "now.json says hint nothing"),
    (8, now(failures=1), "now.json says failures 1"),
    (8, word(READY, FAILED), "Uwf-Status is failed, and must be ready"),
    (10, word(PAUSED, READY), "Uwf-Status is ready, and must be paused"),
    (
        10,
        now(pausedFrom="failed"),
        'now.json says pausedFrom "failed", and the history gives "ready"',
    ),
    (11, word(READY, FAILED), "Uwf-Status is failed, and must be ready"),
    (3, word("Uwf-Event: step", "Uwf-Event: retry"), "Uwf-Event is retry, after the thread was re"),
    (9, word("Uwf-Event: pause", "Uwf-Event: resume"), "Uwf-Event is resume, after the thread was"),
]


@pytest.mark.parametrize("forged", FORGED, ids=lambda each: each[2])
def test_status_or_present_that_does_not_follow_is_reported(forged: Any, world: World) -> None:
    number, change, told = forged
    thread = steered(world)
    oids = forge(world.store, f"refs/threads/{thread}", {number: change(world, thread, number)})

    found = [each.message for each in troubles(world) if each.commit == oids[number]]

    assert any(told in message for message in found), found


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
