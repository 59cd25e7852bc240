"""The effect of each event on a thread's status and state."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import ATTEMPT, SIGNAL, START, STEP
from uwf_git.model.event_folds import (
    Cause,
    Standing,
    begin_state,
    count_steps,
    counts_as_failure,
    describe_step,
    find_wait_end,
    first_line,
    merge_patch,
)
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import (
    Amendment,
    Event,
    Status,
    ThreadState,
    TransitionRecord,
    Try,
    Waiting,
    build_signal,
    parse_present,
)

WORKFLOW, AGENT, OTHER = (NodeHash(letter * 13) for letter in "ABC")
BEGIN = ThreadState(WORKFLOW, {"developer": AGENT}, started_at=1000)
FULL = BEGIN._replace(
    role="developer",
    depth=2,
    state={"a": 1},
    visits={"developer": 2},
    attempts=1,
    last_attempt=OTHER,
    failures=1,
    usage={"tokens": 5},
    execution_ms=9,
    limits={"maxSteps": 9},
    hint="look again",
)
THREAD = ThreadId("01J00000000000000000000001")
RECORD = TransitionRecord(THREAD, "step", "ready", WORKFLOW, 2, WORKFLOW, "demo")

roles = st.sampled_from(["developer", "tester"])
states = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 9), max_size=2)
steps = st.lists(st.tuples(roles, states, st.none() | st.integers(0, 9)), max_size=8)


def at(state: ThreadState, status: Status = "ready") -> Standing:
    return Standing(RECORD._replace(status=status, depth=state.depth), state)


def after(before: Standing, event: Event, node: Node | None = None, **more: Any) -> Standing:
    return apply_event(before, event, Cause(node, **more))


def status_and_state(standing: Standing) -> tuple[Status, ThreadState]:
    return standing.record.status, standing.state


def step_of(role: str, **fields: Any) -> Node:
    return build_node(STEP, {"role": role, **fields}, timestamp=1)


def attempt_of(kind: str, role: str = "developer", **fields: Any) -> Node:
    payload = {"role": role, "error": {"kind": kind, "message": "no"}, **fields}
    return build_node(ATTEMPT, payload, timestamp=1)


def signal(action: Any, **payload: Any) -> Node:
    return build_node(SIGNAL, {"action": action, **payload}, timestamp=1)


def amend(**amendment: Any) -> Node:
    return build_signal("amend", timestamp=1, amendment=Amendment(**amendment))


def test_step_moves_everything_on_and_forgets_the_attempts() -> None:
    step = step_of("tester", state={"a": None, "b": 2}, usage={"tokens": 3}, durationMs=7)
    assert status_and_state(after(at(FULL), "step", step)) == (
        "ready",
        FULL._replace(
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
        ),
    )


def test_attempt_counts_and_moves_nothing_else() -> None:
    failed = attempt_of("exited", durationMs=1)
    tried = FULL._replace(attempts=2, last_attempt=failed.hash, failures=2, execution_ms=10)
    assert status_and_state(after(at(FULL), "attempt", failed)) == ("ready", tried)
    assert status_and_state(after(at(FULL), "attempt", failed, has_retries=False)) == (
        "failed",
        tried,
    )


@pytest.mark.parametrize("kind", ["interrupted", "lost"])
def test_attempt_that_was_cut_short_is_no_failure(kind: str) -> None:
    cut = attempt_of(kind, usage={"tokens": 2})
    tried = after(at(FULL), "attempt", cut, has_retries=False)
    assert (tried.state.attempts, tried.state.failures, tried.state.usage) == (2, 1, {"tokens": 7})
    assert tried.record.status == "ready"
    assert not counts_as_failure(cut.payload)


def test_limit_is_waited_for_and_is_no_failure() -> None:
    limited = attempt_of("limit", "tester", resetAt=99)
    assert find_wait_end(limited.payload) == 99
    waiting = after(at(FULL), "attempt", limited, has_retries=False)
    assert waiting.record.status == "waiting"
    assert (waiting.state.failures, waiting.state.waiting) == (1, Waiting("tester", 99))
    resumed = after(waiting, "resume", signal("resume"))
    assert (resumed.record.status, resumed.state.waiting) == ("ready", None)
    assert after(waiting, "step", step_of("tester")).state.waiting is None


def test_pause_outlasts_what_was_under_way() -> None:
    paused = after(at(FULL), "pause", signal("pause"))
    assert (paused.record.status, paused.state.paused_from) == ("paused", "ready")
    failed = after(paused, "attempt", attempt_of("exited"), has_retries=False)
    assert (failed.record.status, failed.state.paused_from) == ("paused", "failed")
    stepped = after(failed, "step", step_of("tester"))
    assert (stepped.record.status, stepped.state.paused_from) == ("paused", "ready")
    resumed = after(failed, "resume", signal("resume"))
    assert (resumed.record.status, resumed.state.paused_from) == ("failed", None)


def test_wait_is_for_the_role() -> None:
    waiting = after(at(FULL), "wait", role="tester")
    assert status_and_state(waiting) == ("waiting", FULL._replace(waiting=Waiting("tester")))
    assert waiting.record.role == "tester"


def test_retry_allows_all_retries_again_and_leaves_a_hint() -> None:
    retried = after(at(FULL, "failed"), "retry", signal("retry", reason="look"))
    assert status_and_state(retried) == ("ready", FULL._replace(failures=0, hint="look"))


def test_patch_changes_the_state_and_no_status() -> None:
    patched = after(at(FULL, "failed"), "patch", signal("patch", patch={"a": None, "m": 2}))
    assert status_and_state(patched) == ("failed", FULL._replace(state={"m": 2}))


def test_poke_takes_back_the_step_and_not_what_it_cost() -> None:
    before = at(FULL._replace(hint=""))
    step = step_of("tester", state={"b": 2}, usage={"tokens": 3}, durationMs=5)
    poke = signal("poke", reason="again")
    poked = after(after(before, "step", step), "poke", poke, back_to=before)
    assert status_and_state(poked) == (
        "ready",
        before.state._replace(
            attempts=0,
            last_attempt=None,
            failures=0,
            usage={"tokens": 8},
            execution_ms=14,
            hint="again",
        ),
    )
    assert (poked.record.node, poked.record.depth) == (before.record.node, 2)
    with pytest.raises(ValueError, match="before the step"):
        after(before, "poke", poke)


def test_amendment_changes_what_it_says_and_nothing_else() -> None:
    waiting = at(FULL._replace(waiting=Waiting("tester")))
    amendment = amend(binding={"tester": OTHER}, limits={"maxSteps": None, "maxCost": 1.5})
    assert after(waiting, "amend", amendment).state == FULL._replace(
        binding={"developer": AGENT, "tester": OTHER}, limits={"maxCost": 1.5}
    )
    assert after(waiting, "amend", amend()).state == waiting.state
    assert after(at(FULL), "amend", amend(workflow=OTHER)).state.workflow == OTHER


def test_new_agent_of_the_role_that_waits_ends_the_wait() -> None:
    """Also in a paused thread: after its resume it would wait for an agent that is gone."""
    rebound, other = amend(binding={"tester": OTHER}), amend(binding={"developer": OTHER})
    waiting = at(FULL._replace(waiting=Waiting("tester")), "waiting")
    paused = after(waiting, "pause", signal("pause"))

    assert after(waiting, "amend", rebound).record.status == "ready"
    assert after(paused, "amend", rebound).state.paused_from == "ready"
    assert after(paused, "amend", rebound).record.status == "paused"
    assert after(waiting, "amend", other).record.status == "waiting"
    assert after(paused, "amend", other).state.paused_from == "waiting"
    failed = after(at(FULL, "failed"), "pause", signal("pause"))
    assert after(failed, "amend", rebound).state.paused_from == "failed"


def test_fork_begins_without_failures_wait_and_pause() -> None:
    limited = FULL._replace(paused_from="waiting", waiting=Waiting("writer", 9))
    forked = after(at(limited, "paused"), "fork", thread=ThreadId("01J00000000000000000000002"))
    assert status_and_state(forked) == ("ready", FULL._replace(failures=0))
    assert (forked.record.thread[-1], forked.record.forked_from) == ("2", THREAD)


def test_parent_thread_stays_but_for_a_fork() -> None:
    parent = ThreadId("01J00000000000000000000009")
    child = at(FULL)
    child = child._replace(record=child.record._replace(parent_thread=parent))

    assert after(child, "end").record.parent_thread == parent
    other = ThreadId("01J00000000000000000000002")
    assert after(child, "fork", thread=other).record.parent_thread is None


@pytest.mark.parametrize(("event", "status"), [("end", "completed"), ("kill", "killed")])
def test_end_changes_the_status_only(event: Event, status: Status) -> None:
    assert status_and_state(after(at(FULL), event)) == (status, FULL)


def test_thread_begins_with_what_its_start_and_workflow_say() -> None:
    binding = {"writer": {"$ref": AGENT}}
    payload = {"workflow": {"$ref": OTHER}, "agentBinding": binding, "maxSteps": 3, "prompt": "p"}
    start = build_node(START, payload, timestamp=5)

    expected = ThreadState(OTHER, {"writer": AGENT}, 5, state={"n": 1}, limits={"maxSteps": 3})
    assert begin_state(start, {"n": 1}) == expected
    own = start._replace(payload={**start.payload, "initialState": {"n": 2}})
    assert begin_state(own, {"n": 1}).state == {"n": 2}
    with pytest.raises(ValueError, match="names no workflow"):
        begin_state(start._replace(payload={**payload, "workflow": {}}), None)


@given(steps)
def test_folding_the_events_gives_what_stepping_gave(
    taken: list[tuple[str, dict[str, Any], int | None]],
) -> None:
    standing = at(BEGIN)
    state: Any = {}
    for role, patch, tokens in taken:
        usage = None if tokens is None else {"tokens": tokens}
        # Each process reads back what the one before has written.
        read = parse_present(json.loads(json.dumps(standing.state.as_document())))
        standing = after(at(read), "step", step_of(role, state=patch, usage=usage))
        state = merge_patch(state, patch)
    present = standing.state
    assert present.depth == len(taken) == sum(present.visits.values())
    assert present.state == state
    assert present.usage.get("tokens", 0) == sum(tokens or 0 for _role, _patch, tokens in taken)


def test_attempts_of_a_flow_count_where_they_were_made() -> None:
    first = after(at(BEGIN), "attempt", attempt_of("exit"), at="0/1")
    again = after(first, "attempt", attempt_of("exit"), at="0/1")
    elsewhere = after(first, "attempt", attempt_of("exit"), at="0/2")

    assert (first.state.trying, first.state.failures, first.record.at) == ("0/1", 1, "0/1")
    assert (again.state.attempts, again.state.failures) == (2, 2)
    assert (elsewhere.state.attempts, elsewhere.state.failures) == (1, 1)


def test_a_place_without_retries_is_given_up() -> None:
    attempt = attempt_of("exit")
    kept = after(at(FULL), "attempt", attempt, at="0/1/0", gives_up="0/1")
    given_up = after(at(FULL), "attempt", attempt, at="0/1/0", gives_up="0/1", has_retries=False)

    assert kept.state.at is None
    status, state = status_and_state(given_up)
    assert status == "ready"
    assert (state.at, state.attempts, state.failures, state.trying) == ("0/1", 0, 0, None)
    assert state.state == {"a": 1, "error": attempt.payload["error"]["message"]}
    assert state.last_attempt == attempt.hash
    assert parse_present(state.as_document()) == state


def test_a_pause_goes_on_when_a_place_is_given_up() -> None:
    paused = after(at(BEGIN), "pause", build_signal("pause", timestamp=1))

    result = after(paused, "attempt", attempt_of("exit"), at="0/0", gives_up="0", has_retries=False)

    assert (result.record.status, result.state.paused_from, result.state.at) == (
        "paused",
        "ready",
        "0",
    )


def test_a_step_of_a_flow_sets_its_place_and_result() -> None:
    tried = after(at(BEGIN), "attempt", attempt_of("exit"), at="0/0")
    step = step_of("developer", state={"b": None, "c": 2})

    done = after(tried, "step", step, at="0/0", state={"a": 5, "c": 2})

    assert (done.record.at, done.state.at, done.state.trying) == ("0/0", "0/0", None)
    assert done.state.state == {"a": 5, "c": 2}
    assert parse_present(done.state.as_document()) == done.state


def test_work_is_done_when_its_verdict_accepts_it() -> None:
    before = at(BEGIN._replace(at="0/0"))
    due = after(before, "step", step_of("developer"), at="0/1", state={}, verdict="due")
    assert (due.record.status, due.state.at) == ("ready", "0/0")
    assert due.state.tried == Try("0/1", 1, is_verdict=True)
    told = after(due, "step", step_of("tester"), at="0/1", state={}, verdict="accepted")
    assert (told.record.status, told.state.at, told.state.tried) == ("ready", "0/1", None)


@pytest.mark.parametrize(
    ("has_retries", "gives_up", "status", "place"),
    [(True, None, "ready", None), (False, None, "failed", None), (False, "0", "ready", "0")],
)
def test_a_rejection_counts_as_a_failure(
    has_retries: bool,  # noqa: FBT001 (pytest's parameters)
    gives_up: str | None,
    status: str,
    place: str | None,
) -> None:
    due = at(BEGIN._replace(tried=Try("0/1", 2, is_verdict=True), failures=1, trying="0/1"))
    verdict = step_of("tester")
    told = after(
        due, "step", verdict, at="0/1", state={}, verdict="rejected",
        rejection="no tests", has_retries=has_retries, gives_up=gives_up,
    )  # fmt: skip
    assert (told.record.status, told.state.at) == (status, place)
    if gives_up:
        assert (told.state.tried, told.state.state) == (None, {"error": "no tests"})
    else:
        assert told.state.tried == Try("0/1", 3, is_verdict=False, reason=verdict.hash)
        assert (told.state.failures, told.state.trying) == (2, "0/1")


def test_a_verdict_in_a_pause_is_what_a_resume_restores() -> None:
    due = BEGIN._replace(tried=Try("0/1", 1, is_verdict=True), paused_from="ready")
    told = after(
        at(due, "paused"), "step", step_of("tester"), at="0/1", state={}, verdict="rejected",
        has_retries=False,
    )  # fmt: skip
    assert (told.record.status, told.state.paused_from) == ("paused", "failed")


def test_a_person_is_asked_and_answers_at_a_place() -> None:
    waits = after(at(BEGIN), "wait", role="developer", at="0/3")
    answered = after(waits, "answer", step_of("developer"), role="developer", at="0/3")

    assert waits.state.waiting == Waiting("developer", at="0/3")
    assert parse_present(waits.state.as_document()) == waits.state
    assert (answered.state.waiting, answered.state.at) == (None, "0/3")


def test_step_is_reported_by_its_meta_or_by_how_its_text_begins() -> None:
    for meta, content, said in [
        ({"summary": "Fixed the loop."}, "text", "Fixed the loop."),
        ({"title": "A title", "summary": "The summary"}, "", "The summary"),
        ({"summary": "  \n# First\nsecond"}, "", "First"),
        ({"summary": "###", "title": "told"}, "", "told"),
        ({"summary": 7}, "The text says it.", "The text says it."),
        ({"ok": True}, "\n\n## Heading\ntext", "Heading"),
        ({"ok": True}, '{"meta": {"ok": true}}', '{"ok": true}'),
        ({"ok": True}, "```\ncode\n```", '{"ok": true}'),
        ({"ok": True}, "", '{"ok": true}'),
        (["a", 1], "", '["a", 1]'),
        (None, "", "null"),
        ({"name": "日本"}, "", '{"name": "日本"}'),
    ]:
        assert describe_step(meta, content) == said


@pytest.mark.parametrize("meta", [{"summary": "x" * 100_000}, {"other": "x" * 100_000}])
def test_whatever_an_agent_says_is_one_short_line(meta: dict[str, str]) -> None:
    said = describe_step(meta, "")

    assert len(said) == 200
    assert said.endswith("…")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("one", "one"),
        ("\n  two  \nthree", "two"),
        ("# Title\n", "Title"),
        ("#\n##\nx", "x"),
        ("a\rb", "a"),
        ("\n" * 20_000 + "too late", ""),
    ],
)
def test_first_line_is_the_first_that_says_something(text: str, line: str) -> None:
    assert first_line(text) == line


def test_one_step_is_one() -> None:
    assert [count_steps(number) for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


# RFC 7396, appendix A, row by row.
def test_the_examples_of_the_rfc_hold() -> None:
    for target, patch, result in [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]:
        assert merge_patch(target, patch) == result


@given(objects, objects)
def test_neither_is_modified(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    result = merge_patch(target, patch)
    result["new"] = 1
    assert (target, patch) == before


@given(objects, objects)
def test_patching_twice_is_patching_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(objects)
def test_a_patch_of_nothing_changes_nothing_and_one_without_nulls_makes_itself(value: Any) -> None:
    assert merge_patch(value, {}) == value
    assert merge_patch({}, value) == value
