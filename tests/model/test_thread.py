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
    Amendment,
    NotAPresent,
    Present,
    Waiting,
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
    failures=1,
    usage={"tokens": 5},
    execution_ms=9,
    limits={"maxSteps": 9},
    hint="look again",
)
PAUSED = FULL._replace(waiting=Waiting("tester", 12), paused_from="waiting")
roles = st.sampled_from(["developer", "tester"])
states = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 9), max_size=2)
events = st.lists(st.tuples(roles, states, st.none() | st.integers(0, 9)), max_size=8)


def test_the_words_of_the_format_are_these() -> None:
    assert " ".join(STATUSES) == "ready waiting paused failed split completed killed"
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


def test_a_step_moves_everything_on_and_forgets_the_attempts() -> None:
    step = {"role": "tester", "state": {"a": None, "b": 2}, "usage": {"tokens": 3}}
    after = FULL.after_step({**step, "durationMs": 7})
    assert after == FULL._replace(
        role="tester",
        depth=3,
        state={"b": 2},
        visits={"developer": 2, "tester": 1},
        attempts=0,
        last_attempt=None,
        failures=0,
        usage={"tokens": 8},
        execution_ms=16,
        hint="",
    )


def test_an_attempt_counts_and_moves_nothing_else() -> None:
    failed = {"role": "developer", "error": {"kind": "exited", "message": "no"}, "durationMs": 1}
    assert FULL.after_attempt(WORKFLOW, failed, then="ready") == FULL._replace(
        attempts=2, last_attempt=WORKFLOW, failures=2, execution_ms=10
    )


@pytest.mark.parametrize("kind", ["interrupted", "lost"])
def test_a_try_that_somebody_cut_short_is_no_failure(kind: str) -> None:
    cut = {"role": "developer", "error": {"kind": kind, "message": "no"}, "usage": {"tokens": 2}}
    after = FULL.after_attempt(WORKFLOW, cut, then="ready")
    assert (after.attempts, after.failures, after.usage) == (2, 1, {"tokens": 7})


def test_a_limit_is_waited_for_and_is_no_failure() -> None:
    limited = {"role": "tester", "error": {"kind": "limit", "message": "no"}, "resetAt": 99}
    after = FULL.after_attempt(WORKFLOW, limited, then="waiting")
    assert (after.failures, after.waiting) == (1, Waiting("tester", 99))
    assert after.after_resume().waiting is None
    assert after.after_step({"role": "tester"}).waiting is None


def test_a_pause_outlasts_what_was_under_way() -> None:
    paused = FULL.after_pause("ready")
    assert paused.status_after("ready") == "paused"
    failed = {"role": "developer", "error": {"kind": "exited", "message": "no"}}
    after = paused.after_attempt(WORKFLOW, failed, then="failed")
    assert (after.status_after("failed"), after.paused_from) == ("paused", "failed")
    assert after.after_step({"role": "tester"}).paused_from == "ready"
    assert after.after_resume().status_after("failed") == "failed"


def test_poke_takes_back_the_step_and_not_what_it_cost() -> None:
    before = FULL._replace(hint="")
    step = {"role": "tester", "state": {"b": 2}, "usage": {"tokens": 3}, "durationMs": 5}
    poked = before.after_step(step).after_poke(before, "again")
    assert poked == before._replace(
        attempts=0,
        last_attempt=None,
        failures=0,
        usage={"tokens": 8},
        execution_ms=14,
        hint="again",
    )


def test_an_amendment_changes_what_it_says_and_nothing_else() -> None:
    amendment = Amendment(binding={"tester": ATTEMPT}, limits={"maxSteps": None, "maxCost": 1.5})
    waiting = FULL._replace(waiting=Waiting("tester"))
    assert waiting.after_amend(amendment) == FULL._replace(
        binding={"developer": AGENT, "tester": ATTEMPT}, limits={"maxCost": 1.5}
    )
    assert waiting.after_amend(Amendment()) == waiting
    assert FULL.after_amend(Amendment(workflow=ATTEMPT)).workflow == ATTEMPT


def test_position_is_where_the_thread_stands_and_whom_it_waits_for() -> None:
    here = FULL._replace(role="developer", waiting=None)
    assert here.find_gone_role({"developer": 1}) is None
    assert here.find_gone_role({"tester": 1}) == "developer"
    assert here._replace(role="$START").find_gone_role({}) is None
    assert here._replace(waiting=Waiting("tester")).find_gone_role({"developer"}) == "tester"


def test_whoever_gets_the_turn_of_a_role_that_waits_ends_the_wait() -> None:
    """Also of a thread that was paused meanwhile: it would wait for nobody when it goes on."""
    rebound = Amendment(binding={"tester": ATTEMPT})
    waiting = FULL._replace(waiting=Waiting("tester"))
    paused = waiting.after_pause("waiting")

    assert waiting.after_amend(rebound).status_amended("waiting") == "ready"
    assert paused.after_amend(rebound).paused_from == "ready"
    assert paused.after_amend(rebound).status_amended("paused") == "paused"
    other = Amendment(binding={"developer": ATTEMPT})
    assert waiting.after_amend(other).status_amended("waiting") == "waiting"
    assert paused.after_amend(other).paused_from == "waiting"
    assert FULL.after_pause("failed").after_amend(rebound).paused_from == "failed"


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
        present = present.after_step({"role": role, "state": patch, "usage": usage})
        state = merge_patch(state, patch)
    assert present.depth == len(steps) == sum(present.visits.values())
    assert present.state == state
    assert present.usage.get("tokens", 0) == sum(tokens or 0 for _role, _patch, tokens in steps)


@pytest.mark.parametrize("present", [BEGIN, FULL, PAUSED, FULL._replace(waiting=Waiting("a"))])
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
