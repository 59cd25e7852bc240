from typing import Any

import pytest

from uwf_git.commands.check_present import (
    BadPresent,
    find_lies,
    fold_other,
    fold_start,
    fold_step,
    read_now,
)
from uwf_git.model.builtin import START, STEP, WORKFLOW
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Present
from uwf_git.store.node_blob import encode_json

A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")
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


def test_events_are_folded() -> None:
    step = node(STEP, {"role": "writer", "usage": {"tokens": 1}, "state": {"n": None}})

    after = fold_step(PRESENT, step)
    assert (after.depth, after.usage, after.state) == (1, {"tokens": 4}, {})
    failed = PRESENT.after_attempt(B)
    assert fold_other(PRESENT, "attempt", failed) == failed
    assert fold_other(PRESENT, "attempt", PRESENT) is None
    assert fold_other(PRESENT, "kill", failed) == PRESENT
    assert fold_other(PRESENT, "pause", failed) is None
