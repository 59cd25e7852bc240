"""The words of a record, alone and after another one."""

import itertools
from typing import Any, get_args

import pytest

from uwf_git.commands.verify.transition import check_alone, check_first, check_next, check_parents
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Event
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord

THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")
A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")
START = TransitionRecord(THREAD, "start", "ready", A, 0, B, "demo")
STEP = START._replace(event="step", node=B, depth=1, role="writer", agent="nobody")
ATTEMPT = STEP._replace(event="attempt", attempt=1)
END = STEP._replace(event="end", status="completed", role=None, agent=None)
FORK = STEP._replace(event="fork", role=None, agent=None, thread=OTHER, forked_from=THREAD)

PAUSE = STEP._replace(event="pause", status="paused", role=None, agent=None, signal=A)
RESUME = PAUSE._replace(event="resume", status="ready")
WAIT = STEP._replace(event="wait", status="waiting", agent=None)
ANSWER = STEP._replace(event="answer", node=A, depth=2, agent="human")
FAILED = ATTEMPT._replace(status="failed")
RETRY = RESUME._replace(event="retry")
AMEND = RESUME._replace(event="amend", workflow=A, workflow_name="other")
POKE = RESUME._replace(event="poke", node=A, depth=0)

STORY = [START, STEP, ATTEMPT, STEP._replace(node=A, depth=2)]


@pytest.mark.parametrize(
    "record",
    [START, STEP, ATTEMPT, END, FORK, PAUSE, RESUME, WAIT, ANSWER, FAILED, RETRY, AMEND, POKE],
    ids=lambda each: each.event,
)
def test_records_as_they_are_written_are_right(record: TransitionRecord) -> None:
    assert list(check_alone(record, record.thread)) == []
    assert list(check_alone(record, None)) == []


def test_a_story_as_it_is_written_is_right() -> None:
    assert list(check_first(START)) == []
    for before, record in itertools.pairwise(STORY):
        assert list(check_next(before, record)) == []
    assert list(check_next(STEP, END)) == list(check_next(END, FORK)) == []


@pytest.mark.parametrize(
    "story",
    [
        [STEP, PAUSE, STEP._replace(status="paused", depth=2), RESUME._replace(depth=2)],
        [STEP, PAUSE, ATTEMPT._replace(status="paused"), RESUME._replace(status="failed"), RETRY],
        [STEP, FAILED, RETRY, ATTEMPT, FAILED, PAUSE],
        [STEP, WAIT, PAUSE, RESUME._replace(status="waiting"), ANSWER],
        [STEP, ATTEMPT._replace(status="waiting"), RESUME, AMEND],
        [STEP, WAIT, POKE],
        [STEP, PAUSE, END],
        [STEP, PAUSE, FORK],
    ],
)
def test_stories_of_threads_that_were_steered_are_right(story: list[TransitionRecord]) -> None:
    for before, record in itertools.pairwise(story):
        assert list(check_next(before, record)) == []


@pytest.mark.parametrize(
    ("record", "changes", "told"),
    [
        (
            STEP,
            {"status": "completed"},
            "Uwf-Status is completed, and step leads to failed or paused or ready",
        ),
        (END, {"status": "killed"}, "Uwf-Status is killed, and end leads to completed"),
        (STEP, {"role": None}, "step has no Uwf-Role"),
        (END, {"agent": "nobody"}, "end has a Uwf-Agent"),
        (ATTEMPT, {"attempt": None}, "attempt has no Uwf-Attempt"),
        (PAUSE, {"signal": None}, "pause has no Uwf-Signal"),
        (PAUSE, {"status": "ready"}, "Uwf-Status is ready, and pause leads to paused"),
        (WAIT, {"role": None}, "wait has no Uwf-Role"),
        (WAIT, {"agent": "nobody"}, "wait has a Uwf-Agent"),
        (ANSWER, {"agent": None}, "answer has no Uwf-Agent"),
        (STEP, {"signal": A}, "step has a Uwf-Signal"),
        (FORK, {"forked_from": None}, "fork has no Uwf-Forked-From"),
        (STEP, {"forked_from": OTHER}, "step has a Uwf-Forked-From"),
        (END, {"forked_from": OTHER}, "end has a Uwf-Forked-From"),
        (STEP, {"parent_thread": THREAD}, "Uwf-Parent-Thread is the thread itself"),
        (STEP, {"thread": OTHER}, f"Uwf-Thread is {OTHER}, and this is the history of {THREAD}"),
    ],
)
def test_impossible_record_is_reported(
    record: TransitionRecord, changes: dict[str, Any], told: str
) -> None:
    thread = OTHER if record is FORK else THREAD

    assert list(check_alone(record._replace(**changes), thread)) == [told]


@pytest.mark.parametrize(
    ("before", "record", "told"),
    [
        (STEP, START, "Uwf-Event is start, and it has a parent"),
        (END, STEP._replace(depth=2), "Uwf-Event is step, after the thread was completed"),
        (STEP, STEP._replace(depth=3), "Uwf-Depth is 3, and must be 2 after 1"),
        (STEP, ATTEMPT._replace(depth=2), "Uwf-Depth is 2, and must be 1 after 1"),
        (STEP, ATTEMPT._replace(node=A), f"Uwf-Node is {A}, and attempt leaves it at {B}"),
        (STEP, END._replace(workflow=A), f"Uwf-Workflow is {A}, and end leaves it at {B}"),
        (STEP, END._replace(workflow_name="x"), "Uwf-Workflow-Name is 'x', and was 'demo'"),
        (STEP, ANSWER, "Uwf-Event is answer, after the thread was ready"),
        (PAUSE, WAIT, "Uwf-Event is wait, after the thread was paused"),
        (PAUSE, PAUSE, "Uwf-Event is pause, after the thread was paused"),
        (STEP, RESUME, "Uwf-Event is resume, after the thread was ready"),
        (STEP, RETRY, "Uwf-Event is retry, after the thread was ready"),
        (PAUSE, POKE, "Uwf-Event is poke, after the thread was paused"),
        (PAUSE, STEP._replace(depth=2), "is ready after step, and the thread was paused"),
        (STEP, POKE._replace(depth=1), "Uwf-Depth is 1, and must be 0 after 1"),
        (
            STEP,
            END._replace(parent_thread=OTHER),
            f"Uwf-Parent-Thread is {OTHER}, and was absent",
        ),
        (
            STEP._replace(parent_thread=OTHER),
            FORK._replace(parent_thread=OTHER),
            f"Uwf-Parent-Thread is {OTHER}, and a fork has none",
        ),
        (STEP, FORK._replace(depth=0), "Uwf-Depth is 0, and must be 1 after 1"),
    ],
)
def test_record_that_cannot_follow_is_reported(
    before: TransitionRecord, record: TransitionRecord, told: str
) -> None:
    assert any(told in each for each in check_next(before, record))


def test_commit_of_an_older_uwf_may_lack_the_parent_thread() -> None:
    before = STEP._replace(parent_thread=OTHER)

    assert list(check_next(before, END._replace(parent_thread=OTHER))) == []
    assert list(check_next(before, END)) == []


def test_history_begins_with_a_start() -> None:
    assert list(check_first(STEP)) == [
        "Uwf-Event is step, and a history begins with start",
        "Uwf-Depth is 1, and a thread begins with 0",
    ]


@pytest.mark.parametrize("event", get_args(Event))
def test_every_event_has_its_number_of_parents(event: Event) -> None:
    right = {"start": {0}, "join": {0, 1, 2, 5}}.get(event, {1})

    for count in (0, 1, 2, 5):
        # What a join must have follows from its split (test_derived.py).
        assert (check_parents(event, count) is None) == (count in right)
