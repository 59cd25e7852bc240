"""The words of a record, alone and after another one."""

from typing import get_args

import pytest

from uwf_git.commands.verify.making import check_parents, check_record
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import Event, TransitionRecord

THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")
START = TransitionRecord(THREAD, "start", "ready", A, 0, B, "demo")
STEP = START._replace(event="step", node=B, depth=1, role="writer", agent="nobody")
END = STEP._replace(event="end", status="completed", role=None, agent=None)

PAUSE = STEP._replace(event="pause", status="paused", role=None, agent=None, cause=A)
RESUME = PAUSE._replace(event="resume", status="ready")
WAIT = STEP._replace(event="wait", status="waiting", agent=None)
ANSWER = STEP._replace(event="answer", node=A, depth=2, agent="human")
RETRY = RESUME._replace(event="retry")
POKE = RESUME._replace(event="poke", node=A, depth=0)


def told(before: TransitionRecord | None, record: TransitionRecord) -> list[str]:
    return list(check_record(before, record, record.thread))


@pytest.mark.parametrize(
    ("before", "record", "problem"),
    [
        (None, STEP._replace(parent_thread=THREAD), "Uwf-Parent-Thread is the thread itself"),
        (STEP, START, "Uwf-Event is start, and it has a parent"),
        (END, STEP, "Uwf-Event is step, after the thread was completed"),
        (STEP, ANSWER, "Uwf-Event is answer, after the thread was ready"),
        (PAUSE, WAIT, "Uwf-Event is wait, after the thread was paused"),
        (PAUSE, PAUSE, "Uwf-Event is pause, after the thread was paused"),
        (STEP, RESUME, "Uwf-Event is resume, after the thread was ready"),
        (STEP, RETRY, "Uwf-Event is retry, after the thread was ready"),
        (PAUSE, POKE, "Uwf-Event is poke, after the thread was paused"),
    ],
)
def test_record_that_cannot_follow_is_reported(
    before: TransitionRecord | None, record: TransitionRecord, problem: str
) -> None:
    assert any(problem in each for each in told(before, record))


def test_every_event_has_its_number_of_parents() -> None:
    for event in get_args(Event):
        right = {"start": {0}, "join": {0, 1, 2, 5}}.get(event, {1})

        for count in (0, 1, 2, 5):
            # What a join must have follows from its split (test_derived.py).
            assert (not list(check_parents(event, count))) == (count in right)
