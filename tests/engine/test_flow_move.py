import random
from itertools import islice

import pytest
from flow_trees import Tree, as_flow, entries, interpret, order, trees
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.engine.flow_move import (
    LoopExhausted,
    is_possible,
    next_move,
)
from uwf_git.model.flow import SPLITTING, Flow, FlowNode, Position, parse_position

LONG = 60
"""As many stops are compared: flows with loops in loops may have many."""


class Chance:
    """Answers by chance, the same for the same question."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def is_true(self, node: FlowNode, iteration: int, _at: Position | None = None) -> bool:
        return random.Random(f"{self._seed} {node.place} {iteration}").random() < 0.5

    def count_bound(self, node: FlowNode, iteration: int, _at: Position | None = None) -> int:
        return random.Random(f"{self._seed} {node.place} {iteration} bound").randint(
            not node.has_items, 4
        )


class Told:
    """Answers as told, in order."""

    def __init__(self, answers: str = "", *, bound: int = 0) -> None:
        self._answers = [each == "y" for each in answers.split()]
        self._bound = bound
        self.asked: list[tuple[str, int]] = []

    def is_true(self, node: FlowNode, iteration: int, _at: Position | None = None) -> bool:
        self.asked.append((node.place, iteration))
        return self._answers.pop(0)

    def count_bound(self, _node: FlowNode, _iteration: int, _at: Position) -> int:
        return self._bound


def walk(flow: Flow, ask: Chance | Told, entry: Position | None = None) -> list[Position]:
    found: list[Position] = []
    at: Position | None = None
    while len(found) < LONG:
        move = next_move(flow, at, ask, entry=entry)
        assert (move.at is None) == (move.kind == "end")
        if move.at is None:
            break
        assert (move.kind == "split") == (flow.nodes[move.at.place].kind in SPLITTING)
        found.append(move.at)
        at = move.at
    return found


AGENT: Tree = {"type": "agent", "agentId": "a"}


def loop(*nodes: Tree, **fields: object) -> Tree:
    return {"type": "loop", "condition": "x", **fields, "nodes": list(nodes)}


@given(st.lists(trees, min_size=1, max_size=2), st.integers(0, 1000), st.data())
def test_it_comes_to_the_same_places_as_a_naive_interpreter(
    roots: list[Tree], seed: int, data: st.DataObject
) -> None:
    flow, ask = as_flow(*roots), Chance(seed)
    entry = data.draw(st.sampled_from(entries(flow)))
    expected = list(islice(interpret(flow, ask.is_true, ask.count_bound, entry), LONG))

    found = walk(flow, ask, entry)

    assert [str(each) for each in found] == expected
    assert sorted(found, key=order) == found, "positions only grow"
    assert len({order(each) for each in found}) == len(found)


@given(st.lists(trees, min_size=1, max_size=2), st.integers(0, 1000), st.data())
def test_each_move_is_one_that_is_possible(
    roots: list[Tree], seed: int, data: st.DataObject
) -> None:
    flow, ask = as_flow(*roots), Chance(seed)
    entry = data.draw(st.sampled_from(entries(flow)))
    at: Position | None = None
    for position in walk(flow, ask, entry):
        assert is_possible(flow, at, position, entry=entry), (at, position)
        at = position
    following = next_move(flow, at, ask, entry=entry).at
    assert is_possible(flow, at, following, entry=entry)


def test_a_loop_that_must_not_be_exhausted_refuses_the_move_out() -> None:
    flow = as_flow(loop(AGENT, maxIterations=2, onExhausted="stop", name="tidy"))
    at = parse_position("0.2/0")
    assert str(next_move(flow, None, Told()).at) == "0.1/0"
    assert next_move(flow, at, Told("n")).kind == "end"
    with pytest.raises(LoopExhausted, match="loop tidy at 0 made 2 passes"):
        next_move(flow, at, Told("y"))


def test_a_move_after_many_steps_costs_what_it_costs_after_few() -> None:
    flow = as_flow(loop(AGENT, loop(AGENT), maxIterations=10**9))

    def count_questions(passes: int) -> int:
        ask = Told("y y")
        next_move(flow, parse_position(f"0.{passes}/1.{passes % 99 + 1}/0"), ask)
        return len(ask.asked)

    assert count_questions(10_000) == count_questions(10) == 1


@pytest.mark.parametrize("at", ["2", "0/0", "0.1/5", "0.1", "1.1"])
def test_a_place_that_is_gone_is_an_error(at: str) -> None:
    flow = as_flow(loop(AGENT), AGENT)
    with refuses("no-such-place", match=f"no place {at}"):
        next_move(flow, parse_position(at), Told())
