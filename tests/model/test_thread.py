import json
from typing import Any

import pytest

from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import (
    ENDED,
    EVENTS,
    STATUSES,
    NotAPresent,
    ThreadState,
    Waiting,
    parse_present,
)

WORKFLOW, AGENT, ATTEMPT = (NodeHash(letter * 13) for letter in "ABC")
BEGIN = ThreadState(workflow=WORKFLOW, binding={"developer": AGENT}, started_at=1000)
FULL = ThreadState(
    workflow=WORKFLOW,
    binding={"developer": AGENT},
    started_at=1000,
    role="developer",
    depth=2,
    state={"a": 1},
    visits={"developer": 2},
    attempts=1,
    last_attempt=ATTEMPT,
    failures=1,
    usage={"tokens": 5},
    execution_ms=9,
    limits={"maxSteps": 9},
    hint="look again",
)
PAUSED = FULL._replace(waiting=Waiting("tester", 12), paused_from="waiting")


def test_the_words_of_the_format_are_these() -> None:
    assert " ".join(STATUSES) == "ready waiting split paused failed completed killed"
    assert " ".join(EVENTS) == (
        "start step attempt wait answer pause resume retry patch amend poke fork split join end "
        "kill"
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
        "failures": 1,
        "usage": {"tokens": 5},
        "executionTime": 9,
        "limits": {"maxSteps": 9},
        "hint": "look again",
    }
    assert PAUSED.as_document() == {
        **FULL.as_document(),
        "waiting": {"role": "tester", "until": 12},
        "pausedFrom": "waiting",
    }


def test_position_is_where_the_thread_stands_and_whom_it_waits_for() -> None:
    here = FULL._replace(role="developer", waiting=None)
    assert here.find_gone_role({"developer": 1}) is None
    assert here.find_gone_role({"tester": 1}) == "developer"
    assert here._replace(role="$START").find_gone_role({}) is None
    assert here._replace(waiting=Waiting("tester")).find_gone_role({"developer"}) == "tester"


@pytest.mark.parametrize("present", [BEGIN, FULL, PAUSED, FULL._replace(waiting=Waiting("a"))])
def test_what_was_written_reads_back(present: ThreadState) -> None:
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
        ("failures", "1"),
        ("executionTime", 1.5),
        ("limits", 3),
        ("waiting", {}),
        ("waiting", "tester"),
        ("waiting", {"role": "tester", "until": "soon"}),
        ("pausedFrom", "nowhere"),
        ("pausedFrom", []),
        ("hint", 3),
    ],
)
def test_a_field_of_another_kind_is_no_present(field: str, value: Any) -> None:
    with pytest.raises(NotAPresent):
        parse_present({**FULL.as_document(), field: value})
