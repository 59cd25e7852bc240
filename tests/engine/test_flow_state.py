import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from flow_trees import AGENT, Chance, Tree, as_flow, entries, interpret, order, trees
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import refuses

from uwf_git.engine.flow_move import LoopExhausted, is_possible, next_move
from uwf_git.engine.flow_state import (
    MAX_STATE_BYTES,
    Join,
    Merged,
    Side,
    build_patch,
    find_patch_problem,
    find_state_problem,
    fold_result,
    list_largest,
    merge_conflict,
    merge_map,
    merge_parallel,
    result_value,
)
from uwf_git.model.event_folds import merge_patch
from uwf_git.model.flow import SPLITTING, Flow, FlowNode, Position, parse_position

STATES = Path(__file__).parent / "made_up" / "states.json"


def test_results_and_joins(golden: Callable[[str, str], None]) -> None:
    base: State = {"n": 0, "o": {"x": 1, "y": 2}, "l": [1]}
    sides: list[State] = [
        {"one": 0, "oneIndex": 0, "log": ["a"], "sum": 1, "parallel_0": {}},
        {"one": 1, "oneIndex": 1, "log": ["b"], "sum": 2},
    ]

    def tell_fold(state: State, reply: dict[str, Any]) -> State:
        before = repr(state)
        folded = fold_result(state, output="out", **{"content": "", **reply})
        assert repr(state) == before
        return folded

    def tell_map(fields: State) -> Merged:
        node = FlowNode("0", "map", {"as": "one", "output": "out", **fields})
        return merge_map(Join({}, {}, sides_of(sides)), node, [1, None])

    def tell_append(base: State, values: list[Any]) -> list[object]:
        changed = [{"l": value} for value in values]
        return [each.path for each in join(base, base, changed, {"l": "append"}).conflicts]

    answers = {
        "result_value": result_value,
        "fold_result": tell_fold,
        "merge_parallel": lambda *case: top(join(base, *case)),
        "append": tell_append,
        "merge_map": tell_map,
    }
    golden("engine/states.txt", tell_cases(STATES, answers))


@pytest.mark.parametrize("content", ["[" * 502 + "]" * 502, "[" * 90_000, "9" * 5_000])
def test_a_result_that_is_too_large_for_json_is_text(content: str) -> None:
    assert result_value({}, content) == content


def test_a_patch_of_iteration_is_refused() -> None:
    assert find_patch_problem({"a": 1}) is None
    assert find_patch_problem({"a": {"iteration": 1}}) is None
    assert "cannot be patched" in (find_patch_problem({"iteration": None}) or "")


def test_a_state_has_at_most_a_mebibyte_of_json() -> None:
    room = MAX_STATE_BYTES - len('{"a":""}')
    assert find_state_problem({"a": "x" * room}) is None
    assert find_state_problem({"a": "ü" * (room // 2)}) is None
    assert "1,048,577 bytes" in (find_state_problem({"a": "x" * (room + 1)}) or "")
    assert list_largest({"b": 1, "a": "字" * (room // 3)}) == ["a"]


@pytest.mark.parametrize(("levels", "told"), [(499, None), (500, "more than 500 levels")])
def test_a_state_is_as_deep_as_now_json_can_hold_it(levels: int, told: str | None) -> None:
    problem = find_state_problem({"out": nested(levels)})
    assert problem is None if told is None else told in (problem or "")


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


State = dict[str, Any]


def sides_of(states: list[State]) -> list[Side]:
    return [Side(number, f"branch-{number}", state) for number, state in enumerate(states)]


def parallel(merge: Any = None) -> FlowNode:
    return FlowNode("0", "parallel", {} if merge is None else {"merge": merge})


def join(base: State, ours: State, states: list[State], merge: Any = None) -> Merged:
    return merge_parallel(Join(base, ours, sides_of(states)), parallel(merge))


def top(merged: Merged) -> State:
    """Return the state without the keys of branches."""
    assert merged.conflicts == ()
    return {key: each for key, each in merged.state.items() if not key.startswith("parallel_")}


def test_what_was_given_up_is_in_errors() -> None:
    merged = merge_parallel(Join({}, {"errors": ["a"]}, [], ["b", "c"]), parallel())
    assert merged.state == {"errors": ["a", "b", "c"]}


keys = st.sampled_from(["a", "b", "o"])
leaves = st.sampled_from([0, 1, True, None, "x", [], [1], [1, 2]])
objects = st.dictionaries(keys, leaves, max_size=3)
states = st.dictionaries(keys, st.one_of(leaves, objects), max_size=3)


@given(states, st.integers(0, 3), states)
def test_no_changes_change_nothing(base: State, count: int, ours: State) -> None:
    assert top(join(base, ours, [base] * count)) == ours


@given(states, states)
def test_one_branch_alone_has_its_state(base: State, side: State) -> None:
    done = top(join(base, base, [side], "last"))
    assert done == side
    assert json.dumps(done, sort_keys=True) == json.dumps(side, sort_keys=True)


@given(states, states, st.lists(states, max_size=3), st.randoms())
def test_the_order_of_branches_decides_no_errors(
    base: State, ours: State, changed: list[State], random: Any
) -> None:
    sides = sides_of(changed)
    mixed = random.sample(sides, len(sides))
    one = merge_parallel(Join(base, ours, sides), parallel())
    other = merge_parallel(Join(base, ours, mixed), parallel())
    assert {each.path for each in one.conflicts} == {each.path for each in other.conflicts}
    assert one.state == other.state


@given(states, states, st.lists(states, max_size=3))
def test_a_key_that_the_parent_patched_is_the_parents(
    base: State, ours: State, changed: list[State]
) -> None:
    done = join(base, ours, changed, "last")
    for key in ours:
        both = isinstance(base.get(key), dict) and isinstance(ours[key], dict)
        if not both and repr(base.get(key, "-")) != repr(ours[key]):
            assert done.state[key] == ours[key]


@given(states, st.lists(states, min_size=2, max_size=3), st.sampled_from(["error", "append"]))
def test_the_patch_of_each_conflict_settles_it(
    base: State, changed: list[State], merge: str
) -> None:
    ours = base
    for _count in range(10):
        conflicts = join(base, ours, changed, merge).conflicts
        if not conflicts:
            return
        before = len(conflicts)
        ours = merge_patch(ours, conflicts[0].patch())
        assert len(join(base, ours, changed, merge).conflicts) < before
    raise AssertionError("it never ends")


@pytest.mark.parametrize("base", [{}, {"outputs": 1}, {"outputs": {"a": 1}}])
@pytest.mark.parametrize("made", [2, ["x"], {"a": 2}])
def test_outputs_that_are_no_list_are_settled_by_a_patch_alone(base: State, made: Any) -> None:
    changed = [{"outputs": made, "output": 1}, {"outputs": {"a": 3}}]
    conflicts = join(base, base, changed, {"outputs": "last"}).conflicts
    assert top(join(base, merge_patch(base, build_patch(conflicts)), changed))["outputs"] == [1]
    assert "merge:" not in str(merge_conflict("T", "x", conflicts).hint)


def test_hint_says_what_append_needs() -> None:
    notes: list[State] = [{"notes": ["c"]}, {"notes": ["d"]}]
    base: State = {"notes": ["a", "b"]}
    conflicts = join(base, base, notes, {"notes": "append"}).conflicts
    assert "answer the whole list" in str(merge_conflict("T", "x", conflicts).hint)


@given(states, st.lists(states, min_size=2, max_size=3))
def test_the_patch_that_is_printed_settles_all_at_once(base: State, changed: list[State]) -> None:
    conflicts = join(base, base, changed).conflicts
    if not conflicts:
        return
    assert join(base, merge_patch(base, build_patch(conflicts)), changed).conflicts == ()
    assert "None" not in merge_conflict("T", "x", conflicts).message


LONG = 60
"""As many stops are compared: flows with loops in loops may have many."""


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
    assert is_possible(flow, at, next_move(flow, at, ask, entry=entry).at, entry=entry)


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
