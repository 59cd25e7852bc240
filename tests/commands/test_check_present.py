from typing import Any

import pytest

from uwf_git.commands.check_present import (
    BadPresent,
    Steered,
    find_lies,
    fold_attempt,
    fold_plain,
    fold_signal,
    fold_start,
    read_now,
)
from uwf_git.model.builtin import ATTEMPT, START, WORKFLOW
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Event, Present, Waiting
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.node_blob import encode_json

A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")
THREAD = ThreadId("01J00000000000000000000001")
PRESENT = Present(A, {"writer": B}, 5, state={"n": 1}, usage={"tokens": 3}, visits={"writer": 1})


def test_what_was_written_is_read_back() -> None:
    now = read_now(encode_json(PRESENT.as_document()))

    assert now.present == PRESENT
    assert list(find_lies(now.document, PRESENT)) == []


@pytest.mark.parametrize(
    "content", [b"", b"null", b"{}", b"[" * 9999, b"\xff", b'{"a": "\\ud800"}', b'{"a": 1e999}']
)
def test_what_is_none_is_told(content: bytes) -> None:
    with pytest.raises(BadPresent):
        read_now(content)


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
def test_each_part_that_lies_is_told(part: dict[str, Any], told: str) -> None:
    (lie,) = find_lies(PRESENT.as_document() | part, PRESENT)

    assert told in lie


def test_part_that_is_missing_is_told() -> None:
    document = PRESENT.as_document()
    del document["usage"]

    assert list(find_lies(document, PRESENT)) == [
        'now.json says usage nothing, and the history gives {"tokens": 3}'
    ]


def test_order_and_spelling_of_numbers_are_no_lies() -> None:
    document = dict(reversed(PRESENT.as_document().items()))

    assert list(find_lies(document, PRESENT._replace(usage={"tokens": 3.0}))) == []


def node(type_hash: NodeHash, payload: Any) -> Node:
    return build_node(type_hash, payload, timestamp=5)


def test_thread_begins_with_what_its_start_and_workflow_say() -> None:
    binding = {"writer": {"$ref": B}}
    start = node(START, {"workflow": {"$ref": A}, "prompt": "p", "agentBinding": binding})
    workflow = node(WORKFLOW, {"initialState": {"n": 1}})

    expected = Present(workflow.hash, {"writer": B}, 5, state={"n": 1})
    assert fold_start(start, workflow) == expected
    own = start._replace(payload={**start.payload, "initialState": {"n": 2}})
    assert fold_start(own, workflow).state == {"n": 2}


def record(event: Event, role: str | None = None) -> TransitionRecord:
    return TransitionRecord(THREAD, event, "ready", A, 1, A, "demo", role)


def test_events_of_which_the_commit_says_all_are_folded() -> None:
    limited = PRESENT._replace(failures=1, paused_from="ready", waiting=Waiting("writer", 9))

    assert fold_plain(PRESENT, record("kill")) == PRESENT
    assert fold_plain(limited, record("fork")) == PRESENT
    assert fold_plain(PRESENT, record("wait", "writer")) == PRESENT._replace(
        waiting=Waiting("writer")
    )
    assert fold_plain(PRESENT, record("wait")) is None
    assert fold_plain(PRESENT, record("join")) is None


def test_failed_try_is_folded() -> None:
    payload = {"role": "writer", "error": {"kind": "exited", "message": "no"}, "attempt": 1}
    attempt = node(ATTEMPT, payload)

    failed = fold_attempt(PRESENT, PRESENT, attempt)
    assert (failed.attempts, failed.failures, failed.last_attempt) == (1, 1, attempt.hash)
    paused = PRESENT._replace(paused_from="ready")
    said = paused._replace(paused_from="failed")
    assert fold_attempt(paused, said, attempt).paused_from == "failed"


@pytest.mark.parametrize(
    ("event", "payload", "changed"),
    [
        ("pause", {}, {"paused_from": "waiting"}),
        ("resume", {}, {"waiting": None}),
        ("retry", {"reason": "look"}, {"failures": 0, "hint": "look"}),
        ("patch", {"patch": {"n": None, "m": 2}}, {"state": {"m": 2}}),
        ("amend", {"limits": {"maxSteps": 3}}, {"limits": {"maxSteps": 3}}),
        ("amend", {"workflow": {"$ref": B}}, {"workflow": B}),
        ("amend", {"agentBinding": {"c": {"$ref": A}}}, {"binding": {"writer": B, "c": A}}),
    ],
)
def test_signals_are_folded(event: Event, payload: Any, changed: Any) -> None:
    before = PRESENT._replace(failures=2, waiting=Waiting("writer"))

    assert fold_signal(Steered(before, "waiting"), event, payload) == before._replace(**changed)


def test_poke_is_folded_if_it_is_known_where_it_goes_back_to() -> None:
    after = PRESENT.after_step({"role": "writer", "state": {"n": 2}})

    assert fold_signal(Steered(after, "ready", PRESENT), "poke", {}) == PRESENT
    assert fold_signal(Steered(after, "ready"), "poke", {}) is None
