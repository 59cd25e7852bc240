"""Tries: whole threads against a naive interpreter that loops and raises, and has no state."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import flow_trees
import pytest
from flow_trees import AGENT, Tree, as_flow, trees
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.flow_move import find_given_up, is_possible, next_move
from uwf_git.engine.flow_state import find_open_try, is_verdict_due, judge_again
from uwf_git.model.builtin import ATTEMPT, STEP
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.event_rules import apply_event
from uwf_git.model.flow import STOPS, Flow, FlowNode, Position, parse_position
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import ThreadState, TransitionRecord, Try, build_signal

LONG = 80
WORKFLOW = NodeHash("A" * 13)
RECORD = TransitionRecord(
    ThreadId("01J00000000000000000000001"), "start", "ready", WORKFLOW, 0, WORKFLOW, "demo"
)


class Chance(flow_trees.Chance):
    """Answers by chance: conditions alike for the same question, turns in order."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, most=3)
        self._turns = random.Random(seed)

    def tell(self) -> str:
        """Return how a turn ends: no means a verdict that rejects, of work it is good as well."""
        return self._turns.choice(["yes", "yes", "no", "no", "breaks", "check", "lost"])


def decorate(tree: Tree, chance: random.Random) -> Tree:
    """Return *tree* with agents that are verified, and with places that may be given up."""
    made = dict(tree)
    for key in ("nodes", "else"):
        if key in made:
            made[key] = [decorate(inner, chance) for inner in made[key]]
    if made["type"] == "agent":
        made["retries"] = chance.randint(0, 2)
        if chance.random() < 0.7:
            made["verifiedBy"] = {"agentId": "v", "when": "meta.ok"}
    if chance.random() < 0.2:
        made["onError"] = "continue"
    return made


class Broken(Exception):
    """No try is left; raised to the place that is given up."""


def interpret(flow: Flow, ask: Chance) -> Iterator[str]:
    """Yield whose turn it is, and where; and each failure, after which it is retried."""
    for place in flow.list_from("0"):
        yield from _run(flow, place, place, 0, ask)


def _run(flow: Flow, place: str, at: str, passes: int, ask: Chance) -> Iterator[str]:
    node = flow.nodes[place]
    try:
        if node.kind == "agent":
            yield from _try(flow, node, at, ask)
        elif node.kind not in STOPS:
            yield from _run_inner(flow, node, at, passes, ask)
    except Broken:
        if node.fields.get("onError") != "continue":
            raise


def _run_inner(flow: Flow, node: FlowNode, at: str, passes: int, ask: Chance) -> Iterator[str]:
    def run_all(below: str, mark: str, passes: int) -> Iterator[str]:
        for number, child in enumerate(flow.children(node.place, of_else=bool(mark))):
            yield from _run(flow, child, f"{below}/{mark}{number}", passes, ask)

    if node.kind == "sequential":
        yield from run_all(at, "", passes)
    elif node.kind == "conditional":
        yield from run_all(at, "" if ask.is_true(node, passes) else "e", passes)
    else:
        done, items = 0, ask.count_bound(node, passes) if node.has_items else None
        while items != 0:
            done += 1
            yield from run_all(f"{at}.{done}", "", done - 1)
            most = items or node.literal_bound or ask.count_bound(node, done)
            if done >= most or ("condition" in node.fields and not ask.is_true(node, done)):
                break


def _try(flow: Flow, node: FlowNode, at: str, ask: Chance) -> Iterator[str]:
    """Do the work until a verdict accepts it; whatever ends a try, it uses one up."""
    retries, used, breaks = node.fields["retries"], 0, 0
    is_done = False
    while True:
        yield f"{at} {node.verifier if is_done else node.agent}"
        told = ask.tell()
        if told == "lost":
            continue
        if told in {"breaks", "check"}:
            breaks, used = (breaks + 1, used) if is_done else (breaks, used + 1)
        elif not is_done and node.verifier is not None:
            is_done, breaks = True, 0
            continue
        elif told == "yes" or not is_done:
            return
        else:
            is_done, used = False, used + 1
        if max(used, breaks if is_done else 0) > retries and not (
            is_done and told not in {"breaks", "check"}
        ):
            if _is_given_up(flow, at):
                raise Broken
            yield "failed"
            used = breaks = 0


def _is_given_up(flow: Flow, at: str) -> bool:
    places = at.split("/")
    ways = [Position(parse_position(at).parts[: count + 1]).place for count in range(len(places))]
    return any(flow.nodes[place].fields.get("onError") == "continue" for place in ways)


def walk(flow: Flow, ask: Chance) -> Iterator[str]:
    """Yield the same from what a thread's engine does: decide, fold, record."""
    now = Standing(RECORD, ThreadState(WORKFLOW, {}, started_at=0))
    while True:
        state = now.state
        last, tried = find_open_try(flow, state.tried, state.at)
        previous = None if last is None else parse_position(last)
        at = tried or next_move(flow, previous, ask).at
        assert tried is not None or is_possible(flow, previous, at)
        if at is None:
            return
        node = flow.nodes[at.place]
        if node.kind != "agent":
            now = Standing(now.record, state._replace(at=str(at), tried=None))
            continue
        is_verdict = is_verdict_due(node, state.tried, str(at))
        role = node.verifier if is_verdict else node.agent
        yield f"{at} {role}"
        now = _record(now, flow, at, ask.tell(), is_verdict=is_verdict)
        if now.record.status == "failed":
            yield "failed"
            now = apply_event(now, "retry", Cause(build_signal("retry", timestamp=1)))


def _record(now: Standing, flow: Flow, at: Position, told: str, *, is_verdict: bool) -> Standing:
    node, state = flow.nodes[at.place], now.state.begin_tries(str(at))
    role = node.verifier if is_verdict else node.agent
    given_up = find_given_up(flow, at)
    gives_up = None if given_up is None else str(given_up)
    retries = node.fields["retries"]
    if told in {"breaks", "check", "lost"}:
        error = {"kind": "exited" if told == "breaks" else told, "message": "no"}
        payload = {"role": role, "attempt": state.attempts + 1, "error": error}
        cause = Cause(
            build_node(ATTEMPT, payload, timestamp=1),
            role=role,
            at=str(at),
            has_retries=state.failures < retries,
            gives_up=gives_up,
        )
        return apply_event(now, "attempt", cause)
    step = build_node(STEP, {"role": role, "meta": {"n": state.depth}}, timestamp=1)
    cause = Cause(step, role=role, at=str(at), state={}, gives_up=gives_up)
    if is_verdict:
        number = 1 if state.tried is None else state.tried.number
        verdict: Any = "accepted" if told == "yes" else "rejected"
        cause = cause._replace(verdict=verdict, has_retries=number <= retries)
    elif node.verifier is not None:
        cause = cause._replace(verdict="due")
    return apply_event(now, "step", cause)


@given(st.lists(trees, min_size=1, max_size=2), st.integers(0, 10_000))
def test_a_thread_does_what_a_naive_interpreter_does(roots: list[Tree], seed: int) -> None:
    assert_same(roots, seed)


@pytest.mark.parametrize("hundreds", range(3))
def test_so_does_one_that_carries_out_plans(hundreds: int) -> None:
    plans = {"type": "loop", "maxIterations": 9, "nodes": [AGENT]}
    for number in range(100):
        assert_same([plans], 100 * hundreds + number)


def assert_same(roots: list[Tree], seed: int) -> None:
    chance = random.Random(seed)
    flow = as_flow(*(decorate(tree, chance) for tree in roots))
    expected = list(islice(interpret(flow, Chance(seed)), LONG))
    assert list(islice(walk(flow, Chance(seed)), LONG)) == expected


@pytest.mark.parametrize(
    ("at", "is_verdict", "told"),
    [
        ("0.2/0", True, ("0.2/0", None)),  # nobody verifies it any more: it is done
        ("0.2/0", False, ("0.1/1", "0.2/0")),  # it was rejected before: it is to be done
        ("0.2/2", True, ("0.1/1", None)),  # the place is gone
        ("0.2", True, ("0.1/1", None)),
        ("", True, ("0.1/1", None)),
    ],
)
def test_a_try_in_a_flow_that_was_changed(
    at: str,
    is_verdict: bool,  # noqa: FBT001 (pytest's parameters)
    told: tuple[str, str | None],
) -> None:
    flow = as_flow({"type": "loop", "maxIterations": 3, "nodes": [AGENT, AGENT]})
    last, position = find_open_try(flow, Try(at, 1, is_verdict), "0.1/1")
    assert (last, None if position is None else str(position)) == told


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("meta.ok === true", "accepted"),
        ("!meta.ok", "rejected"),
        ("meta.ok && state.late", "unknown"),
        ("meta.deep.ok", "unknown"),
        ("meta.list.some(x => meta.list.every(y => y === x + 1))", "unknown"),
        (f"meta.ok || {'!' * 500}meta.ok", "unknown"),
    ],
)
def test_a_verdict_is_told_again_if_that_is_cheap(when: str, told: str) -> None:
    flow = as_flow({**AGENT, "verifiedBy": {"agentId": "v", "when": when}})
    meta = {"ok": True, "list": [0] * 10_000}
    assert judge_again(flow, flow.nodes["0"], meta) == told
    assert judge_again(Flow(flow.nodes, "jsonata"), flow.nodes["0"], meta) == "unknown"
