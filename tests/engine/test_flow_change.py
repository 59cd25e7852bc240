"""Whether a thread can go on in another flow."""

from itertools import islice, product
from typing import Any

import pytest
from flow_trees import AGENT, Tree, as_flow, entries, flatten, in_passes, interpret, order, trees
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.engine.flow_move import (
    FlowWords,
    Rules,
    find_lost_place,
    find_other_change,
    find_renamed_place,
    has_left,
    is_possible,
    next_move,
)
from uwf_git.errors import Refused
from uwf_git.model.flow import HOLDING, STOPS, Flow, FlowNode, Position, parse_flow, parse_position
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import Split, ThreadState, Try, Waiting
from uwf_git.model.workflow import Transition


def loop(*nodes: Tree, **fields: object) -> Tree:
    return {"type": "loop", **fields, "nodes": list(nodes)}


def sequence(*nodes: Tree) -> Tree:
    return {"type": "sequential", "nodes": list(nodes)}


def at(place: str | None) -> ThreadState:
    return ThreadState(NodeHash("3FXJM7QS2A9PB"), {}, 0, at=place)


OLD = as_flow(sequence(AGENT, loop(AGENT, AGENT, condition="x")))


@pytest.mark.parametrize(
    ("new", "place", "lost"),
    [
        (sequence(AGENT, loop(AGENT, AGENT, condition="y", maxIterations=2)), "0/1.3/0", None),
        (sequence(AGENT, loop(AGENT), AGENT), "0/1.3/0", None),
        (sequence(AGENT, loop(AGENT)), "0/1.3/1", "0/1.3/1"),
        (sequence(AGENT, sequence(AGENT, AGENT)), "0/1.3/0", "0/1.3/0"),
        (sequence(AGENT, sequence(AGENT, AGENT)), "0/0", None),
        (loop(AGENT), "0/0", "0/0"),
        (AGENT, None, None),
    ],
)
def test_the_way_to_the_place_stays(new: Tree, place: str | None, lost: str | None) -> None:
    assert find_lost_place(OLD, as_flow(new), at(place)) == lost


def agent(name: str, **fields: object) -> Tree:
    return {"type": "agent", "agentId": name, **fields}


def both(name: str) -> Tree:
    return {"type": "parallel", "name": name, "nodes": [AGENT, AGENT]}


THREE = sequence(
    agent("one"), agent("two", verifiedBy={"agentId": "judge", "when": "true"}), both("checks")
)
JUDGED = at("0/0")._replace(tried=Try("0/1", 1, is_verdict=True))


@pytest.mark.parametrize(
    ("new", "present", "lost"),
    [
        (THREE, at("0/1"), None),
        (THREE, at(None), None),
        # Another node before it moves all others.
        (sequence(agent("zero"), agent("one"), agent("two")), at("0/1"), "0/1"),
        (sequence(agent("zero"), agent("two"), both("more")), at("0/1"), None),
        (sequence(agent("zero"), agent("two"), both("more")), at("0/2"), "0/2"),
        (THREE, at("0/0")._replace(waiting=Waiting("judge", at="0/1")), None),
        (THREE, at("0/0")._replace(waiting=Waiting("one", at="0/1")), "0/1"),
        (THREE, JUDGED, None),
        (sequence(agent("one"), agent("too")), JUDGED, "0/1"),
    ],
)
def test_what_has_finished_is_the_same_there(
    new: Tree, present: ThreadState, lost: str | None
) -> None:
    assert find_renamed_place(as_flow(THREE), as_flow(new), present) == lost


@given(trees, st.data())
def test_no_run_comes_to_a_node_that_is_added_where_it_has_left(
    root: Tree, data: st.DataObject
) -> None:
    old = as_flow(root)
    held = [place for place, node in old.nodes.items() if node.kind in HOLDING]
    if not held:
        return
    container = data.draw(st.sampled_from(held))
    added = f"{container}/{len(old.children(container))}"
    new = Flow({**old.nodes, added: FlowNode(added, "agent", {"agentId": "added"})}, old.language)
    chance = data.draw(st.randoms(use_true_random=False))
    steps = interpret(new, lambda *_: chance.random() < 0.5, lambda *_: chance.randrange(1, 3))
    visits = list(islice(steps, 50))
    for number, visited in enumerate(visits):
        if parse_position(visited).place == added:
            continue
        left = has_left(old, container, at(visited))
        assert not left or added not in [parse_position(v).place for v in visits[number + 1 :]]


def test_where_it_waits_and_has_split_counts_too() -> None:
    new = as_flow(sequence(AGENT))

    waiting = at("0/0")._replace(waiting=Waiting("a", at="0/1.1/0"))
    split = at("0/0")._replace(split=Split("0/1", ()))

    assert find_lost_place(OLD, new, waiting) == "0/1.1/0"
    assert find_lost_place(OLD, new, split) == "0/1"
    assert find_lost_place(OLD, OLD, split) is None
    assert find_lost_place(OLD, OLD, at("no place")) == "no place"


MOST_PASSES = 3
MOST_QUESTIONS = 9
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


def test_any_pass_takes_the_same_time() -> None:
    flow = as_flow({"type": "loop", "condition": "x", "maxIterations": "${x}", "nodes": [MAYBE]})
    assert is_possible(flow, parse_position("0.1/0/0"), parse_position("0.999999999/0/0"))


# Expressions of flows where a thread stands, in both languages.


STATE: dict[str, Any] = {"n": 3, "name": "Ann", "list": [1, 2], "none": None}


HERE = parse_position("0")


def words(language: str = "javascript", **items: Any) -> FlowWords:
    return FlowWords(language, STATE, prompt="Do it.", depth=4, items=items)


def node(**fields: Any) -> FlowNode:
    return FlowNode("0", "loop", fields)


@pytest.mark.parametrize(
    ("language", "condition", "holds"),
    [
        ("javascript", "state.n === 3 && iteration < 2", True),
        ("javascript", "state.iteration > 0 || item.big", True),
        ("javascript", "state.none", False),
        ("javascript", "prompt.length + depth === 10", True),
        ("jsonata", "state.n = 3 and iteration < 2", True),
        ("jsonata", "item.big = true", True),
        ("jsonata", "state.missing", False),
    ],
)
def test_a_condition_is_answered_in_its_language(
    language: str,
    condition: str,
    holds: bool,  # noqa: FBT001 (pytest's parameters)
) -> None:
    assert words(language, item={"big": True}).is_true(node(condition=condition), 1, HERE) is holds


@pytest.mark.parametrize(
    ("language", "template", "filled"),
    [
        ("javascript", "${state.list}", [1, 2]),
        ("javascript", "n is ${state.n}, ${state.list}", "n is 3, [1,2]"),
        ("javascript", "plain", "plain"),
        (
            "javascript",
            {"a": "${state.n}", "b": ["x", "${prompt}"]},
            {"a": 3, "b": ["x", "Do it."]},
        ),
        ("jsonata", "${state.list}", [1, 2]),
        ("jsonata", "for ${state.name}: ${state.n + 1}", "for Ann: 4"),
        ("jsonata", '${ {"a": state.n} }', {"a": 3}),
        ("jsonata", "${state.none}", None),
    ],
)
def test_a_template_keeps_the_type_alone_and_is_text_within_text(
    language: str, template: Any, filled: Any
) -> None:
    assert words(language).fill(template, 0, HERE) == filled


@pytest.mark.parametrize("bound", ["${state.name}", "${state.n / 2}", "${state.n - 3}", "${true}"])
def test_a_bound_that_is_no_count_is_an_error(bound: str) -> None:
    with refuses("flow-value", match="maxIterations"):
        words().count_bound(node(maxIterations=bound), 0, HERE)


@pytest.mark.parametrize("language", ["javascript", "jsonata"])
@pytest.mark.parametrize("over", ["state.list", "${state.list}"])
def test_a_map_goes_over_a_list(language: str, over: str) -> None:
    assert words(language).list_items(node(over=over), 0, HERE) == [1, 2]


PARTS = loop(AGENT, **{"over": "plan.parts", "as": "part"})
PLANS = as_flow(loop(AGENT, PARTS, **{"over": "state.plans", "as": "plan"}))
PLAN_STATE = {"plans": [{"parts": ["a"]}, {"parts": ["b", "c"]}], "plan": "of an agent"}


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("0.1/0", [["a"], 0, None]),
        ("0.2/0", [["b", "c"], 1, None]),
        ("0.2/1.2/0", [["b", "c"], 1, "c"]),
    ],
)
def test_a_loop_gives_its_item_to_what_is_in_it(at: str, told: list[Any]) -> None:
    here = parse_position(at)
    words = FlowWords("javascript", PLAN_STATE, "", 0, flow=PLANS)
    plan, number = (words.fill(each, 0, here) for each in ("${plan.parts}", "${state.planIndex}"))
    assert [plan, number, words.inside(here).items.get("part")] == told
    assert words.fill("${state.plan.parts}", 0, here) == plan


def test_an_item_that_is_gone_is_no_item_and_no_older_value() -> None:
    state = {"plans": [], "plan": "of an agent"}
    inside = FlowWords("javascript", state, "", 0, flow=PLANS).inside(parse_position("0.2/0"))
    assert not inside.holds("state.plan", 0)


def test_a_loop_has_as_many_passes_as_items_and_at_most_a_thousand() -> None:
    def count(items: list[int]) -> int:
        words = FlowWords("javascript", {"plans": items}, "", 0, flow=PLANS)
        return words.count_bound(PLANS.nodes["0"], 0, HERE)

    assert (count([]), count([0] * 3), count([0] * 1000)) == (0, 3, 1000)
    with refuses("flow-value", match="has 1,001 items, of at most 1,000"):
        count([0] * 1001)
    with refuses("flow-value", match="has 1,001 items, of at most 1,000"):
        FlowWords("javascript", {"list": [0] * 1001}, "", 0).list_items(
            FlowNode("0", "map", {"over": "state.list"}), 0, HERE
        )


@pytest.mark.parametrize(
    ("field", "template", "value"),
    [
        ("retries", "${state.n - 1}", 2),
        ("retries", "${state.none}", None),
        ("retries", "${state.n / 2}", "no whole number"),
        ("retries", "${-1}", "at least 0 is due"),
        ("retries", "${state.name}", "no whole number"),
        ("timeout", "${state.n * 1000}", 3000),
        ("timeout", "${state.none}", None),
        ("timeout", "${0}", "no number of milliseconds above 0"),
        ("timeout", "${state.list}", "no number of milliseconds"),
    ],
)
def test_numbers_that_the_state_gives(field: str, template: str, value: Any) -> None:
    named = node(**{field: template})

    def read() -> Any:
        if field == "retries":
            return words().count_retries(named, 0, HERE)
        return words().find_timeout_ms(named, template, 0, HERE)

    if isinstance(value, str):
        with refuses("flow-value", match=f"{field} of loop .0. is .*{value}"):
            read()
    else:
        assert read() == value


def test_a_move_whose_conditions_take_too_much_work_is_an_error() -> None:
    dear = "(state.long + '.').length < 1"
    flow = as_flow(loop({**MAYBE, "condition": dear}, maxIterations=10**6))
    asked = FlowWords("javascript", {"long": "a" * 1_000_000}, "", 0, flow=flow)

    with pytest.raises(Refused, match="too much work together"):
        next_move(flow, None, asked)


# An append adds: all else in the workflow is as it was.

_NODES = flatten(sequence(AGENT, {**MAYBE, "condition": "true"}))
_PAYLOAD = {"name": "w", "description": "D.", "roles": {"a": "1"}, "flow": "f"}
_TO_END = Transition("$END", None)
_AGAIN = Transition("a", "depth < 3")
_GRAPH = {"$START": (Transition("a", None),), "a": (_AGAIN, _TO_END)}


def flow(more: dict[str, Any] | None = None, *, language: str = "javascript") -> Rules:
    payload = {"nodes": {**_NODES, **(more or {})}, "language": language}
    return Rules(_PAYLOAD, parse_flow(payload), None)


def graph(ways: dict[str, tuple[Transition, ...]]) -> Rules:
    return Rules(_PAYLOAD, None, _GRAPH | ways)


@pytest.mark.parametrize(
    "more",
    [
        {"1": AGENT},
        {"1": AGENT, "2": {"type": "loop"}, "2/0": AGENT},
        {"0/2": AGENT},
        {"0/1/1": AGENT, "0/1/2": AGENT},
        {"1": {"type": "conditional", "condition": "1"}, "1/0": AGENT, "1/e0": AGENT},
    ],
)
def test_nodes_at_the_end_of_one_list_are_an_append(more: dict[str, Any]) -> None:
    assert find_other_change(flow(), flow(more)) is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"0/0": {"type": "agent", "agentId": "b"}}, "differs at 0/0"),
        ({"1": AGENT, "0/2": AGENT}, "has new nodes in several lists: 1, 0/2"),
        ({"0/1/e0": AGENT}, "has a new node in an else: 0/1/e0"),
    ],
)
def test_what_no_append_does_to_a_flow_is_told(more: dict[str, Any], told: str) -> None:
    assert find_other_change(flow(), flow(more)) == told


def test_a_node_that_is_gone_and_another_language_are_told() -> None:
    assert find_other_change(flow({"1": AGENT}), flow()) == "differs at 1"
    assert find_other_change(flow(), flow(language="jsonata")) == "is in jsonata"
    assert find_other_change(flow(), graph({})) == "is of another kind"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"roles": {"a": "2", "b": "3"}, "agentOverrides": {"b": {}}}, None),
        ({"roles": {"b": "3"}}, "lacks a in roles"),
        ({"description": "E."}, "has another description"),
        ({"initialState": {}}, "has another initialState"),
    ],
)
def test_roles_are_added_or_replaced_and_nothing_else(
    change: dict[str, Any], told: str | None
) -> None:
    old = flow()

    assert find_other_change(old, old._replace(payload=_PAYLOAD | change)) == told


@pytest.mark.parametrize(
    ("ways", "told"),
    [
        ({"a": (Transition("b", "x"), _AGAIN, _TO_END), "b": (_TO_END,)}, None),
        ({"a": (Transition("b", None),), "b": (_TO_END,)}, None),
        ({"a": (Transition("b", "x"),)}, "lacks ways from a"),
        ({"$START": ()}, "lacks ways from $START"),
    ],
)
def test_ways_of_a_graph_are_added(
    ways: dict[str, tuple[Transition, ...]], told: str | None
) -> None:
    assert find_other_change(graph({}), graph(ways)) == told
