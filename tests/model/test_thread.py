import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.merge_patch import merge_patch
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import (
    ENDED,
    EVENTS,
    STATUSES,
    NotAPresent,
    Present,
    parse_present,
)

WORKFLOW, AGENT, ATTEMPT = (NodeHash(letter * 13) for letter in "ABC")
BEGIN = Present(workflow=WORKFLOW, binding={"developer": AGENT}, started_at=1000)
FULL = Present(
    workflow=WORKFLOW,
    binding={"developer": AGENT},
    started_at=1000,
    role="developer",
    depth=2,
    state={"a": 1},
    visits={"developer": 2},
    attempts=1,
    last_attempt=ATTEMPT,
    usage={"tokens": 5},
)
roles = st.sampled_from(["developer", "tester"])
states = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 9), max_size=2)
events = st.lists(st.tuples(roles, states, st.none() | st.integers(0, 9)), max_size=8)


def test_the_words_of_the_format_are_these() -> None:
    assert " ".join(STATUSES) == "ready waiting paused failed split completed killed"
    assert " ".join(EVENTS) == (
        "start step attempt pause resume answer patch amend fork split join end kill"
    )
    assert {"completed", "killed"} == ENDED


def test_a_thread_that_has_just_begun_says_little() -> None:
    assert BEGIN.as_document() == {
        "workflow": {"$ref": WORKFLOW},
        "agentBinding": {"developer": {"$ref": AGENT}},
        "cursor": {"role": "$START"},
        "depth": 0,
        "startedAt": 1000,
    }


def test_a_thread_that_has_come_far_says_all() -> None:
    assert FULL.as_document() == {
        **BEGIN.as_document(),
        "cursor": {"role": "developer"},
        "depth": 2,
        "state": {"a": 1},
        "visits": {"developer": 2},
        "attempts": 1,
        "lastAttempt": {"$ref": ATTEMPT},
        "usage": {"tokens": 5},
    }


def test_a_step_moves_everything_on_and_forgets_the_attempts() -> None:
    after = FULL.after_step("tester", state={"a": None, "b": 2}, usage={"tokens": 3})
    assert after == FULL._replace(
        role="tester",
        depth=3,
        state={"b": 2},
        visits={"developer": 2, "tester": 1},
        attempts=0,
        last_attempt=None,
        usage={"tokens": 8},
    )


def test_an_attempt_counts_and_moves_nothing_else() -> None:
    assert FULL.after_attempt(WORKFLOW) == FULL._replace(attempts=2, last_attempt=WORKFLOW)


@given(events)
def test_folding_the_events_gives_what_stepping_gave(
    steps: list[tuple[str, dict[str, Any], int | None]],
) -> None:
    present = BEGIN
    state: Any = {}
    for role, patch, tokens in steps:
        usage = None if tokens is None else {"tokens": tokens}
        # Each process reads back what the one before has written.
        present = parse_present(json.loads(json.dumps(present.as_document())))
        present = present.after_step(role, state=patch, usage=usage)
        state = merge_patch(state, patch)
    assert present.depth == len(steps) == sum(present.visits.values())
    assert present.state == state
    assert present.usage.get("tokens", 0) == sum(tokens or 0 for _role, _patch, tokens in steps)


@pytest.mark.parametrize("present", [BEGIN, FULL])
def test_what_was_written_reads_back(present: Present) -> None:
    assert parse_present(json.loads(json.dumps(present.as_document()))) == present


@pytest.mark.parametrize("document", [None, 1, "text", [], {}, {"workflow": {"$ref": WORKFLOW}}])
def test_something_else_is_no_present(document: Any) -> None:
    with pytest.raises(NotAPresent):
        parse_present(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workflow", WORKFLOW),
        ("workflow", {"$ref": "x"}),
        ("workflow", {"$ref": 1234567890123}),
        ("agentBinding", []),
        ("agentBinding", {"developer": {"$ref": None}}),
        ("cursor", None),
        ("cursor", {}),
        ("cursor", {"role": None}),
        ("depth", -1),
        ("depth", 1.5),
        ("depth", True),
        ("depth", "2"),
        ("startedAt", None),
        ("state", []),
        ("visits", []),
        ("visits", {"developer": "2"}),
        ("attempts", -1),
        ("lastAttempt", {"$ref": 1}),
        ("lastAttempt", False),
        ("usage", 3),
    ],
)
def test_a_field_of_another_kind_is_no_present(field: str, value: Any) -> None:
    with pytest.raises(NotAPresent):
        parse_present({**FULL.as_document(), field: value})
