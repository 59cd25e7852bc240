"""The table of events, and that what writers record obeys it."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.commands.verify.making import check_person, check_record
from uwf_git.model.builtin import ATTEMPT, SIGNAL, START, STEP
from uwf_git.model.event_folds import Cause, Joined, Standing
from uwf_git.model.event_rules import (
    CONTROLS,
    RULES,
    SIGNALLED,
    STEPS,
    apply_event,
    begin_thread,
    carries,
    event_of,
    may_follow,
)
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import ENDED, EVENTS, STATUSES, Action, Event, Split

WORKFLOW, OTHER, AGENT = (NodeHash(letter * 13) for letter in "ABC")
THREAD, FORKED = (ThreadId(f"01J0000000000000000000000{number}") for number in "12")
START_NODE = build_node(
    START,
    {"workflow": {"$ref": WORKFLOW}, "prompt": "p", "agentBinding": {"writer": {"$ref": AGENT}}},
    timestamp=5,
)
BEGIN = begin_thread(THREAD, START_NODE, "demo", initial_state=None)


CARRIED = {"role", "agent", "attempt", "forked_from", "cause"}


def test_each_event_has_a_row() -> None:
    assert set(RULES) == set(EVENTS) == set(get_args(Event))


@pytest.mark.parametrize("event", get_args(Event))
def test_each_row_is_made_of_known_words(event: Event) -> None:
    rule = RULES[event]

    assert set(rule.after.split()) | set(rule.leads_to.split()) <= set(STATUSES)
    assert set(rule.carries.split()) <= CARRIED
    assert (rule.fold is None) == (event == "start")
    assert all(may_follow(event, status) for status in rule.after.split())


def test_groups_of_events_are_read_from_the_table() -> None:
    assert {"step", "answer", "join"} == STEPS
    assert {"pause", "resume", "retry", "patch", "amend"} == CONTROLS
    assert {event_of(action) for action in get_args(Action)} == SIGNALLED
    assert all(carries(event, "cause") for event in SIGNALLED)
    assert {event for event in RULES for status in ENDED if may_follow(event, status)} == {"fork"}


def test_event_without_a_fold_follows_no_commit() -> None:
    with pytest.raises(ValueError, match="start"):
        apply_event(BEGIN, "start", Cause())


def node_of(event: Event, number: int, kind: str) -> Node | None:
    """Build a node as the writer of *event* does; *number* makes it another one each time."""
    if event in STEPS:
        step = {"role": "writer", "state": {"n": number}, "durationMs": number}
        return build_node(STEP, step, timestamp=number)
    if event == "attempt":
        attempt = {"role": "writer", "error": {"kind": kind, "message": str(number)}}
        more = {"resetAt": number} if kind == "limit" else {}
        return build_node(ATTEMPT, attempt | more, timestamp=number)
    if event not in SIGNALLED:
        return None
    parts: dict[str, Any] = {
        "patch": {"patch": {"n": number}},
        "amend": {"agentBinding": {"writer": {"$ref": OTHER}}, "workflow": {"$ref": OTHER}},
    }
    signal = {"action": event, "reason": "r"} | parts.get(event, {})
    return build_node(SIGNAL, signal, timestamp=number)


def cause_of(event: Event, number: int, kind: str, back_to: Standing) -> Cause:
    return Cause(
        node=node_of(event, number, kind),
        role="writer",
        agent="human" if event == "answer" else "uwf-mock",
        has_retries=number % 2 == 0,
        back_to=back_to if event == "poke" else None,
        thread=FORKED if event == "fork" else None,
        workflow_name="other" if event == "amend" else None,
        split=Split("0", ()) if event == "split" else None,
        joined=Joined({"n": number}) if event == "join" else None,
    )


written = st.sampled_from([event for event, rule in RULES.items() if rule.fold is not None])
kinds = st.sampled_from(["exited", "limit", "interrupted"])
stories = st.lists(st.tuples(written, kinds), max_size=30)


@given(stories)
def test_what_writers_record_obeys_the_table(story: list[tuple[Event, str]]) -> None:
    """Each event that may come next is recorded as writers do, and verify finds nothing wrong."""
    standing, back_to = BEGIN, BEGIN
    for number, (event, kind) in enumerate(story):
        before = standing
        is_possible = may_follow(event, before.record.status)
        record = before.record._replace(event=event, role="writer")
        if any(check_person(before, record)) or not is_possible or event == "fork":
            continue
        if event == "poke" and before.state.depth == back_to.state.depth:
            continue
        standing = apply_event(before, event, cause_of(event, number, kind, back_to))
        back_to = before if event in STEPS else back_to

        record = standing.record
        assert list(check_record(before.record, record, THREAD)) == []
        for field in CARRIED:
            assert (getattr(record, field) is not None) == carries(event, field), (event, field)
        assert record.status in RULES[event].leads_to.split()
        assert (record.depth, record.workflow) == (standing.state.depth, standing.state.workflow)


@given(stories, st.sampled_from(get_args(Event)), st.sampled_from(STATUSES))
def test_verify_refuses_what_is_not_in_the_table(
    story: list[tuple[Event, str]], event: Event, status: Any
) -> None:
    standing = BEGIN
    for number, (each, kind) in enumerate(story):
        if may_follow(each, standing.record.status) and each not in {"fork", "poke"}:
            standing = apply_event(standing, each, cause_of(each, number, kind, standing))
    before = standing.record
    record = before._replace(event=event, status=status)

    if not may_follow(event, before.status):
        assert any("Uwf-Event" in told for told in check_record(before, record, None))
