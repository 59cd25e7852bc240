"""The effect of each event on a thread's status and state."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from model.test_thread import AGENT, BEGIN, FULL, OTHER, WORKFLOW

from uwf_git.model.builtin import ATTEMPT, SIGNAL, START, STEP
from uwf_git.model.event_folds import (
    Cause,
    Standing,
    begin_state,
    counts_as_failure,
    describe_step,
    find_wait_end,
    merge_patch,
)
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import ThreadId
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

FOLDS = Path(__file__).parent / "made_up" / "folds.json"


THREAD = ThreadId("01J00000000000000000000001")
PAID = FULL._replace(attempts=0, last_attempt=None, failures=0, usage={"tokens": 8})
RECORD = TransitionRecord(THREAD, "step", "ready", WORKFLOW, 2, WORKFLOW, "demo")

roles = st.sampled_from(["developer", "tester"])
states = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 9), max_size=2)


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
        PAID._replace(
            role="tester",
            depth=3,
            state={"b": 2},
            visits={"developer": 2, "tester": 1},
            execution_ms=16,
            hint="",
        ),
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


def test_poke_takes_back_the_step_and_not_what_it_cost() -> None:
    before = at(FULL._replace(hint=""))
    step = step_of("tester", state={"b": 2}, usage={"tokens": 3}, durationMs=5)
    poke = signal("poke", reason="again")
    poked = after(after(before, "step", step), "poke", poke, back_to=before)
    assert status_and_state(poked) == ("ready", PAID._replace(execution_ms=14, hint="again"))
    assert (poked.record.node, poked.record.depth) == (before.record.node, 2)
    with pytest.raises(ValueError, match="before the step"):
        after(before, "poke", poke)


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


@given(st.lists(st.tuples(roles, states, st.none() | st.integers(0, 9)), max_size=8))
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


def test_a_verdict_in_a_pause_is_what_a_resume_restores() -> None:
    due = BEGIN._replace(tried=Try("0/1", 1, is_verdict=True), paused_from="ready")
    told = after(
        at(due, "paused"), "step", step_of("tester"), at="0/1", state={}, verdict="rejected",
        has_retries=False,
    )  # fmt: skip
    assert (told.record.status, told.state.paused_from) == ("paused", "failed")


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


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


def test_steps_are_described_and_patches_merged(golden: Callable[[str, str], None]) -> None:
    answers = {
        "describe_step": describe_step,
        "merge_patch of RFC 7396, appendix A, row by row": merge_patch,
    }
    golden("model/folds.txt", tell_cases(FOLDS, answers))
