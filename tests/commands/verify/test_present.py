from typing import Any

import pytest

from uwf_git.commands.verify.present import find_lies, fold_next
from uwf_git.model.builtin import ATTEMPT
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.node import build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord

A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")
THREAD = ThreadId("01J00000000000000000000001")
PRESENT = ThreadState(
    A, {"writer": B}, 5, state={"n": 1}, usage={"tokens": 3}, visits={"writer": 1}
)


def test_what_follows_is_no_lie() -> None:
    assert list(find_lies(PRESENT.as_document(), PRESENT)) == []


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"depth": 1}, "now.json says depth 1, and the history gives 0"),
        ({"depth": False}, "now.json says depth false, and the history gives 0"),
        ({"state": {"n": 1, "m": 2}}, 'state {"n": 1, "m": 2}, and the history gives {"n": 1}'),
        ({"attempts": 1}, "now.json says attempts 1, and the history gives nothing"),
        ({"usage": {"tokens": "x" * 90}}, 'usage {"tokens": "' + "x" * 47 + "…, and"),
    ],
)
def test_each_part_that_lies_is_reported(part: dict[str, Any], told: str) -> None:
    (lie,) = find_lies(PRESENT.as_document() | part, PRESENT)

    assert told in lie


def test_part_that_is_missing_is_reported() -> None:
    document = PRESENT.as_document()
    del document["usage"]

    assert list(find_lies(document, PRESENT)) == [
        'now.json says usage nothing, and the history gives {"tokens": 3}'
    ]


def test_order_and_spelling_of_numbers_are_no_lies() -> None:
    document = dict(reversed(PRESENT.as_document().items()))

    assert list(find_lies(document, PRESENT._replace(usage={"tokens": 3.0}))) == []


def test_attempt_may_leave_a_thread_ready_or_failed() -> None:
    """The number of retries is a setting of the machine that ran the agent."""
    payload = {"role": "writer", "error": {"kind": "exited", "message": "no"}, "attempt": 1}
    cause = Cause(build_node(ATTEMPT, payload, timestamp=5))
    record = TransitionRecord(THREAD, "attempt", "ready", A, 1, A, "demo", "writer")
    before = Standing(record, PRESENT)

    assert [each.record.status for each in fold_next(before, record, cause)] == ["ready", "failed"]
    paused = Standing(record._replace(status="paused"), PRESENT._replace(paused_from="ready"))
    assert [each.state.paused_from for each in fold_next(paused, record, cause)] == [
        "ready",
        "failed",
    ]
    cut = build_node(ATTEMPT, {**payload, "error": {"kind": "lost", "message": ""}}, timestamp=5)
    assert len(fold_next(before, record, Cause(cut))) == 1
    assert len(fold_next(before, record._replace(event="kill"), Cause())) == 1
