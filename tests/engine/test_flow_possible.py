from itertools import product

import pytest
from flow_trees import Tree, as_flow, entries, in_passes, order, trees
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.flow_move import is_possible, next_move
from uwf_git.model.flow import STOPS, Flow, FlowNode, Position, parse_position

MOST_PASSES = 3
MOST_QUESTIONS = 9
AGENT: Tree = {"type": "agent", "agentId": "a"}
MAYBE: Tree = {"type": "conditional", "condition": "x", "nodes": [AGENT]}


class Enough(Exception):
    """More questions than this test tries all answers of."""


class Answers:
    """Answers in a given order, and never lets a loop make more passes than the test compares."""

    def __init__(self, answers: tuple[bool, ...]) -> None:
        self._answers = iter(answers)

    def is_true(self, _node: FlowNode, _iteration: int, _at: Position) -> bool:
        answer = next(self._answers, None)
        if answer is None:
            raise Enough
        return answer

    def count_bound(self, node: FlowNode, iteration: int, at: Position) -> int:
        return (at.turn or 0) + self.is_true(node, iteration, at)


def reach(flow: Flow, at: Position | None, entry: Position | None) -> set[str] | None:
    """Return all that can follow *at*; None if there are too many questions."""
    found: set[str] = set()
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        answers = waiting.pop()
        try:
            move = next_move(flow, at, Answers(answers), entry=entry)
        except Enough:
            if len(answers) == MOST_QUESTIONS:
                return None
            waiting += [(*answers, True), (*answers, False)]
        else:
            found.add(str(move.at))
    return found


def candidates(flow: Flow, entry: Position | None) -> list[Position]:
    """List all positions of all places, with the first passes."""
    found: list[Position] = []
    for place in flow.nodes:
        whole = in_passes(flow, place)
        loops = [
            number
            for number, part in enumerate(whole.parts)
            if part.turn is not None
            and flow.nodes[Position(whole.parts[: number + 1]).place].kind == "loop"
        ]
        for turns in product(range(1, MOST_PASSES + 1), repeat=len(loops)):
            parts = list(whole.parts)
            for number, turn in zip(loops, turns, strict=True):
                parts[number] = parts[number]._replace(turn=turn)
            for number, part in enumerate(() if entry is None else entry.parts):
                if number < len(parts) - 1 and part.turn is not None and number not in loops:
                    parts[number] = parts[number]._replace(turn=part.turn)
            found.append(Position(tuple(parts)))
    return found


@given(st.lists(trees, min_size=1, max_size=2), st.data())
def test_possible_is_what_some_answers_lead_to(roots: list[Tree], data: st.DataObject) -> None:
    flow = as_flow(*roots)
    entry = data.draw(st.sampled_from(entries(flow)))
    places = candidates(flow, entry)
    stops = [each for each in places if flow.nodes[each.place].kind in STOPS]
    at = data.draw(st.sampled_from([None, *places]))
    if at is not None and not is_reached(flow, at, entry):
        assert not any(is_possible(flow, at, each, entry=entry) for each in [*stops, None])
        return
    reached = reach(flow, at, entry)
    if reached is None:
        return
    for position in [*stops, None]:
        told = is_possible(flow, at, position, entry=entry)
        assert told == (str(position) in reached), (str(at), str(position))
        assert not told or at is None or position is None or order(at) < order(position)


def is_reached(flow: Flow, at: Position, entry: Position | None) -> bool:
    """Check that a thread from *entry* can be inside what is around *at*."""
    known = () if entry is None else entry.parts
    if at.place not in flow.nodes or len(at.parts) < len(known) + bool(known and known[-1].turn):
        return False
    for number, part in enumerate(at.parts[:-1]):
        kind = flow.nodes[Position(at.parts[: number + 1]).place].kind
        inside = number + (kind == "parallel") < len(known)
        if kind == "map" and inside and known[number].turn is None:
            # It began as a branch that is a map: its items are other threads.
            return False
        if kind in ("parallel", "map") and not inside:
            return False
        if inside and part.number != known[number].number:
            return False
    branch = Position(at.parts[: len(known)]).place
    same_turns = all(
        part.turn == mine.turn for part, mine in zip(known[:-1], at.parts, strict=False)
    )
    if not known:
        return True
    last = known[-1].turn is None or at.parts[len(known) - 1].turn == known[-1].turn
    return branch == Position(known).place and same_turns and last


@pytest.mark.parametrize(
    ("previous", "following", "told"),
    [
        (None, "0.1/0", True),
        (None, "0.1/1", False),  # an agent comes before
        (None, "0.2/0", False),  # a pass before
        ("0.1/0", "0.1/1/0", True),
        ("0.1/0", "0.2/0", True),  # the conditional says no
        ("0.1/0", "0.3/0", False),
        ("0.1/1/0", "0.1/0", False),  # backwards
        ("0.1/1/0", "0.1/1/0", False),  # the same again
        ("0.4/0", "0.5/0", True),
        ("0.5/0", "0.6/0", False),  # the bound is 5
        ("0.1/0", "1", True),  # the loop's condition says no
        ("0", "1", True),  # the loop was given up
        ("0", "0.2/0", False),
        ("0.2/1", "0.3/0", True),  # the conditional was given up
        ("0.1/0", "2", False),
        ("0.1/0", "0.1", False),  # no stop
        ("0.1/0", "0/1", False),  # a loop without its pass
        ("0.1/0", "1.1", False),  # an agent with one
        ("0.1/0", "9", False),
    ],
)
def test_a_table_of_moves(previous: str | None, following: str, *, told: bool) -> None:
    root = {
        "type": "loop",
        "condition": "x",
        "maxIterations": 5,
        "nodes": [AGENT, MAYBE],
    }
    flow = as_flow(root, AGENT)
    before = None if previous is None else parse_position(previous)
    assert is_possible(flow, before, parse_position(following)) is told


def test_a_loop_without_condition_cannot_be_left_early() -> None:
    flow = as_flow({"type": "loop", "maxIterations": 3, "nodes": [AGENT]}, AGENT)
    assert not is_possible(flow, parse_position("0.2/0"), parse_position("1"))
    assert is_possible(flow, parse_position("0.3/0"), parse_position("1"))


def test_a_lower_bound_lets_the_pass_under_way_go_on() -> None:
    flow = as_flow({"type": "loop", "condition": "x", "maxIterations": 2, "nodes": [AGENT, AGENT]})
    assert is_possible(flow, parse_position("0.4/0"), parse_position("0.4/1"))
    assert not is_possible(flow, parse_position("0.4/0"), parse_position("0.5/0"))
    assert is_possible(flow, parse_position("0.4/1"), None)


def test_the_next_pass_of_a_loop_that_is_a_branch_begins_at_its_first_agent() -> None:
    loop = {"type": "loop", "condition": "x", "maxIterations": 2, "nodes": [AGENT, AGENT]}
    flow = as_flow({"type": "parallel", "nodes": [AGENT, loop]})
    entry = parse_position("0/1")
    ended, first, second = (parse_position(f"0/1.{each}") for each in ("1/1", "2/0", "2/1"))
    assert is_possible(flow, ended, first, entry=entry)
    assert not is_possible(flow, ended, second, entry=entry)


def test_any_pass_takes_the_same_time() -> None:
    flow = as_flow({"type": "loop", "condition": "x", "maxIterations": "${x}", "nodes": [MAYBE]})
    assert is_possible(flow, parse_position("0.1/0/0"), parse_position("0.999999999/0/0"))
