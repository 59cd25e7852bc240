import copy
import dataclasses
import itertools
import json
import operator
import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising, refuses

from uwf_git.engine.expression import evaluate_condition
from uwf_git.engine.moderator import (
    LazyList,
    Position,
    StepSummary,
    build_context,
    lazy_list,
    next_role,
)
from uwf_git.model.definition.definition import TABLE_NAMES
from uwf_git.model.workflow import END, START, Graph, Transition


def at(role: str, meta: Mapping[str, object], depth: int = 3) -> Position:
    return Position(
        role=role,
        meta=meta,
        depth=depth,
        state={"errors": 0},
        prompt="fix it",
        iteration=2,
        start_time_ms=1_700_000_000_000,
    )


def no_history() -> list[StepSummary]:
    return lazy_list(9_999, raising(AssertionError("history was read")))


def test_the_context_has_the_keys_that_the_design_names() -> None:
    steps = [StepSummary("planner", {"plan": ["a"]}), StepSummary("developer", {})]
    context = build_context(at("reviewer", {"approved": False}), lambda: steps)
    assert context == {
        "role": "reviewer",
        "meta": {"approved": False},
        "depth": 3,
        "history": (
            {"role": "planner", "meta": {"plan": ["a"]}},
            {"role": "developer", "meta": {}},
        ),
        "state": {"errors": 0},
        "prompt": "fix it",
        "iteration": 2,
        "startTime": 1_700_000_000_000,
    }
    assert context.keys() == set(TABLE_NAMES)


@pytest.mark.parametrize("depth", [0, 1])
def test_where_no_step_came_before_no_history_is_loaded(depth: int) -> None:
    assert build_context(at(START, {}, depth), no_history)["history"] == ()


def test_routing_on_meta_loads_no_history() -> None:
    context = build_context(at("reviewer", {"approved": False}, 10_000), no_history)
    assert evaluate_condition("meta.approved = false and depth > 9", context)


ROLES = ["planner", "developer", "reviewer", "tester"]
CONDITIONS = ["a", "b", "c", "d"]

transitions = st.builds(
    Transition, to=st.sampled_from([*ROLES, END]), condition=st.none() | st.sampled_from(CONDITIONS)
)
graphs = st.dictionaries(
    st.sampled_from([START, *ROLES]), st.lists(transitions, max_size=5).map(tuple), min_size=1
)
answers = st.fixed_dictionaries({condition: st.booleans() for condition in CONDITIONS})


@given(graph=graphs, answer=answers, data=st.data())
def test_any_graph_gives_a_role_it_names_or_end_or_says_that_none_holds(
    graph: Graph, answer: dict[str, bool], data: st.DataObject
) -> None:
    position = data.draw(st.sampled_from(sorted(graph)))
    open_ways = [
        way.to for way in graph[position] if way.condition is None or answer[way.condition]
    ]
    if open_ways:
        assert next_role(graph, position, answer.__getitem__) == open_ways[0]
        assert open_ways[0] in {*ROLES, END}
    else:
        with refuses("no-transition"):
            next_role(graph, position, answer.__getitem__)


# Laziness must be invisible: every way to read the list returns what a plain list would.

PLAIN = [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]


def counted(items: Sequence[Any]) -> tuple[LazyList[Any], list[int]]:
    """Return the lazy list of *items*, and the list of the places that were read."""
    read: list[int] = []

    def get(place: int) -> Any:
        read.append(place)
        return items[place]

    return lazy_list(len(items), get), read


@dataclasses.dataclass(frozen=True)
class Step:
    n: int


@dataclasses.dataclass(frozen=True)
class Holder:
    steps: Sequence[Step]


READS: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "length": (len, []),
    "truth": (bool, []),
    "type": (lambda each: isinstance(each, Sequence | list), []),
    "newest": (lambda each: each[-1], [3]),
    "newest twice": (lambda each: (each[-1]["n"], each[-1]["n"]), [3]),
    "oldest": (lambda each: each[0], [0]),
    "empty slice": (lambda each: list(each[4:]), []),
    "slice's length": (lambda each: len(each[-2:]), []),
    "last of a slice": (lambda each: each[1:-1][-1], [2]),
    "slice of a slice": (lambda each: list(each[1:][::2]), [1, 3]),
    "backwards": (lambda each: next(iter(reversed(each))), [3]),
    "backwards by a slice": (lambda each: next(iter(each[::-1])), [3]),
    "first of a loop": (lambda each: next(iter(each)), [0]),
    "first few": (lambda each: list(itertools.islice(each, 2)), [0, 1]),
    "itemgetter": (operator.itemgetter(-1), [3]),
    "unequal length": (lambda each: (each == PLAIN[:3], each != PLAIN[:3]), []),
    "other type": (lambda each: (each == 1, each != 1), []),
    "itself": (lambda each: each == each[:], []),
    "copy.copy": (lambda each: len(copy.copy(each)), []),
}


def _given(*items: Any) -> Any:
    return items


def _unpacked(items: Any) -> Any:
    first, *middle = items
    one, two, three, four = items
    return first, middle, one, two, three, four


def _extended(items: Any) -> Any:
    longer = [5]
    longer.extend(items)
    longer += items
    return longer


def _last_matched(items: Any) -> Any:
    match items:
        case [_, *_, last]:
            return last
    raise AssertionError("no sequence")


READS_OF_ALL: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "copy": lambda each: each.copy(),
    "equal": lambda each: each == PLAIN,
    "equal the other way": lambda each: PLAIN == each,  # noqa: SIM300 (the other operand asks)
    "equal to a tuple": lambda each: list(each) == PLAIN and each != "x",
    "equal inside": lambda each: {"steps": each} == {"steps": PLAIN},
    "unpacked": lambda each: [*each, 5],
    "arguments": lambda each: _given(*each),
    "a name for each": _unpacked,
    "plus": lambda each: each + [5],  # noqa: RUF005 (the operator is tested)
    "added to": lambda each: [5] + each,  # noqa: RUF005 (see above)
    "chained": lambda each: list(itertools.chain([5], each)),
    "extended by": _extended,
    "assigned to a slice": lambda each: (other := [5], operator.setitem(other, slice(0), each))[0],
    "times": lambda each: (each * 2, 2 * each),
    "index": lambda each: each.index({"n": 2}),
    "index from": lambda each: each.index({"n": 2}, -3, 4),
    "count": lambda each: each.count({"n": 2}),
    "contains": lambda each: ({"n": 2} in each, 7 in each),
    "sorted": lambda each: sorted(each, key=lambda item: -item["n"]),
    "compared": lambda each: [[item["n"] for item in each] < [5], each[:0] < [5], each[:0] >= []],
    "zip": lambda each: list(zip(each, each, strict=True)),
    "json": json.dumps,
    "indented json": lambda each: json.dumps({"steps": each}, indent=2),
    "copy.deepcopy": copy.deepcopy,
    "pickled": lambda each: pickle.loads(pickle.dumps(each)),
    "matched": _last_matched,
    "sampled": lambda each: random.Random(1).sample(each, 4),
}


@pytest.mark.parametrize("name", READS)
def test_access_reads_only_what_it_shows(name: str) -> None:
    read, places = READS[name]
    lazy, seen = counted(PLAIN)

    assert read(lazy) == read(PLAIN)
    assert seen == places


@pytest.mark.parametrize("name", READS_OF_ALL)
def test_every_way_to_read_all_sees_all(name: str) -> None:
    read = READS_OF_ALL[name]

    assert read(counted(PLAIN)[0]) == read(PLAIN)


def test_nothing_of_a_list_is_inherited_by_mistake() -> None:
    harmless = {"__new__", "__init__", "__getattribute__", "__sizeof__", "__doc__", "__hash__"}

    assert vars(list).keys() - vars(LazyList).keys() <= harmless | {"__class_getitem__"}


@pytest.mark.parametrize("index", [4, -5, 10**30])
def test_index_out_of_range_is_refused_without_reading(index: int) -> None:
    lazy, seen = counted(PLAIN)

    with pytest.raises(IndexError):
        lazy[index]
    with pytest.raises(TypeError):
        lazy["x"]  # type: ignore[call-overload]  # a list refuses it
    assert seen == []


def test_missing_item_has_no_index() -> None:
    with pytest.raises(ValueError, match="is not in list"):
        counted(PLAIN)[0].index({"n": 9})


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each.append(1),
        lambda each: each.sort(),
        lambda each: each.clear(),
        lambda each: each.pop(),
        lambda each: operator.setitem(each, 0, 1),
        lambda each: operator.delitem(each, 0),
        lambda each: each.__iadd__([1]),
        lambda each: each.__imul__(2),
    ],
)
def test_nothing_changes_a_lazy_list(change: Callable[[Any], Any]) -> None:
    lazy, _ = counted(PLAIN)

    with pytest.raises(TypeError, match="cannot be changed"):
        change(lazy)
    assert lazy == PLAIN


def test_showing_a_list_reads_nothing() -> None:
    lazy, seen = counted(PLAIN * 1_000)

    assert repr(lazy) == "<4,000 items, read when accessed>"
    assert seen == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(lazy)


def test_dataclass_that_holds_it_becomes_a_plain_document() -> None:
    lazy, _ = counted([Step(1), Step(2)])
    holder = Holder(lazy)

    assert json.loads(json.dumps(dataclasses.asdict(holder))) == {"steps": [{"n": 1}, {"n": 2}]}
    assert holder == Holder([Step(1), Step(2)])
    assert dataclasses.replace(holder) == holder
    assert copy.deepcopy(holder).steps == [Step(1), Step(2)]


INDEXES = st.integers(-12, 12)
SLICES = st.builds(
    slice, st.none() | INDEXES, st.none() | INDEXES, st.none() | INDEXES.filter(bool)
)


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(INDEXES | SLICES, max_size=6))
def test_any_chain_of_indexes_gives_what_it_gives_of_a_list(
    items: list[int], indexes: list[int | slice]
) -> None:
    lazy: Any = counted(items)[0]
    plain: Any = items
    for index in indexes:
        if isinstance(index, slice):
            lazy, plain = lazy[index], plain[index]
            assert (len(lazy), bool(lazy)) == (len(plain), bool(plain))
            continue
        try:
            expected = plain[index]
        except IndexError:
            with pytest.raises(IndexError, match="list index out of range"):
                lazy[index]
        else:
            assert lazy[index] == expected
    assert lazy == plain
    assert list(reversed(lazy)) == plain[::-1]
    assert [each in lazy for each in range(4)] == [each in plain for each in range(4)]
    assert (lazy < items, lazy <= items, lazy > items, lazy >= items) == (
        plain < items, plain <= items, plain > items, plain >= items,
    )  # fmt: skip
