"""What the evaluator promises beside node's answers: kinds of results, and where an error is."""

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from engine.javascript.node import TABLE
from engine.javascript.told import REFUSED, ours
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.javascript.evaluator import (
    MOST,
    Reader,
    Together,
    call_method,
    evaluate,
    evaluate_condition,
    fill_template,
    parse_template,
)
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import (
    SOURCE_BYTES,
    TEXT_UNITS,
    UNDEFINED,
    Budget,
    ExpressionFailed,
    Unanswerable,
    from_units,
    number_text,
    text_number,
    to_units,
)
from uwf_git.errors import StoreDamaged

NAMES: dict[str, Any] = {"state": {"a": [1, {"b": "x"}], "n": 3.0, "big": 2**60 + 1, "s": "😀"}}


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("1 + state.x.y", 12, "undefined has no member 'y'; `?.` allows that"),
        ("state.n + state.a", 9, "3 + an array: name a member"),
        ("1 < state", 3, "1 < an object: name a member"),
        ("-state", 1, "an object cannot become a number"),
        ("`a${state.a}`", 5, "an array cannot become a text"),
        ("state.a.trim()", 9, "an array has no `trim(…)` here"),
        ("state.a.map(x => x.b.c)", 21, "undefined has no member 'c'"),
        ("state['const' + 'ructor']", 6, "`constructor` belongs to every object"),
        ("state.s.at", 8, "`at` is a method"),
        ("Object.keys(1)", 1, "Object.keys(1): it is no object"),
        ("state.a === [1]", 9, "an array and an array cannot be compared"),
        ("'\ua7dc'.toLowerCase()", 5, "U+A7DC has another case in each Unicode"),
        ("'Σ\u0295'.toLowerCase()", 6, "U+0295 has another case in each Unicode"),
        ("other", 1, "unknown name `other`"),
    ],
)
def test_an_error_names_the_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionFailed) as raised:
        evaluate(parse_expression(text), NAMES)
    assert raised.value.problem.startswith(problem)
    assert raised.value.position == position


class _Lazy(Mapping[str, Any]):
    """Reads what it is asked for, as contexts do that load on access."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.read.append(key)
        if key == "lost":
            raise StoreDamaged("it is lost")
        if key not in list(self):
            raise KeyError(key)
        return {"x": 1, "y": 2}

    def __iter__(self) -> Any:
        return iter(["state", "prompt", "lost"])

    def __len__(self) -> int:
        return 3


def test_only_what_is_asked_for_is_read_and_its_errors_pass() -> None:
    names = _Lazy()
    assert evaluate(parse_expression("state.x || prompt"), names) == 1
    assert names.read == ["state"]
    with pytest.raises(StoreDamaged):
        evaluate(parse_expression("lost"), names)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ExpressionFailed, match="the data holds a Decimal"):
        evaluate(parse_expression("x"), {"x": Decimal(1)})


# The methods and operators apart from expressions: what they cost, and whom they refuse.


@pytest.mark.parametrize("method", ["trim", "toLowerCase", "toUpperCase"])
def test_a_text_that_is_made_is_paid_for(method: str) -> None:
    reader = Reader(Budget())
    for _ in range(16):
        call_method(reader, "a" * TEXT_UNITS, method, UNDEFINED)
    with pytest.raises(Unanswerable, match="too much text"):
        call_method(reader, "a" * TEXT_UNITS, method, UNDEFINED)


def test_a_case_may_be_longer_than_the_text() -> None:
    with pytest.raises(Unanswerable, match="more than 1048576 characters"):
        call_method(Reader(Budget()), "ŉ" * (TEXT_UNITS // 2 + 1), "toUpperCase", UNDEFINED)


# The table answers.json holds node's answers (node.py wrote them): the same, or refused.

_READ = json.loads(TABLE.read_text())
NAMES_ANSWERS: dict[str, Any] = _READ["names"]
ANSWERED: list[tuple[str, Any]] = _READ["answered"]
REFUSALS: list[tuple[str, Any]] = _READ["refused"]


def test_the_table_is_large() -> None:
    assert len(ANSWERED) >= 300
    assert len(REFUSALS) >= 200


def test_the_answers_are_nodes() -> None:
    mine = [(text, ours(text, NAMES_ANSWERS)) for text, _ in ANSWERED]
    assert mine == [tuple(row) for row in ANSWERED]


def test_what_could_be_another_answer_is_refused() -> None:
    assert [text for text, _ in REFUSALS if ours(text, NAMES_ANSWERS) != REFUSED] == []


def test_a_condition_is_the_truth_of_the_value() -> None:
    wrong = [
        text
        for text, answer in ANSWERED
        if evaluate_condition(parse_expression(text), NAMES_ANSWERS) is not _truth(answer)
    ]
    assert wrong == []


def _truth(answer: Any) -> bool:
    match answer:
        case {"s": value}:
            return bool(value)
        case {"n": number}:
            return number not in {"0", "-0", "NaN"}
        case {"u": _}:
            return False
    return answer is True or isinstance(answer, dict)


def test_a_value_shares_nothing_with_the_data() -> None:
    before = json.dumps(NAMES_ANSWERS)
    value = evaluate(parse_expression("[state, state.arr.filter(x => x)]"), NAMES_ANSWERS)
    value[0]["nested"]["items"].clear()
    value[0]["arr"].append(4)
    value[1].append(5)
    assert json.dumps(NAMES_ANSWERS) == before


# Templates: alone an expression keeps its type, within text it is printed.

NAMES_TEMPLATE: dict[str, Any] = {
    "state": {
        "requirement": "实现用户登录功能",
        "n": 10,
        "half": 0.5,
        "whole": 2.0,
        "big": 1e21,
        "yes": True,
        "nothing": None,
        "empty": "",
        "list": [1, "a", None, {"b": [], "10": 1, "9": 2.50}],
        "odd": {"é😀": '"\\\n\u2028\x01/'},
        "pair": "😀",
    }
}

FILLED = [
    ("", ""),
    ("no expression, $ { } \\ \\n ` 'x", "no expression, $ { } \\ \\n ` 'x"),
    ("${state.n}", 10),
    ("${state.whole}", 2),
    ("${state.yes}", True),
    ("${state.nothing}", None),
    ("${state.list}", [1, "a", None, {"9": 2.5, "10": 1, "b": []}]),
    ("${-0}", 0),
    ("${ state.n /* as it is */ }", 10),
    (" ${state.n}", " 10"),
    ("${state.n}\n", "10\n"),
    ("${state.n}${state.half}", "100.5"),
    ("需求: ${state.requirement}\n", "需求: 实现用户登录功能\n"),
    ("Review: ${state.feedback || '首次编写'}.", "Review: 首次编写."),
    ("${state.nothing} ${state.yes} ${state.big} ${-0} ${0/0}", "null true 1e+21 0 NaN"),
    ("<${state.empty}>", "<>"),
    ("= ${state.list}", '= [1,"a",null,{"9":2.5,"10":1,"b":[]}]'),
    ("= ${state.odd}", '= {"é😀":"\\"\\\\\\n\u2028\\u0001/"}'),
    ("= ${[1e21, 1e-7, -0]}", "= [1e+21,1e-7,0]"),
    ("\\${state.n}", "${state.n}"),
    ("\\\\${state.n}", "\\${state.n}"),
    ("$${state.n}$", "$10$"),
    ("${'}'}${`${'}'}`} }", "}} }"),
    ("${state.list.map(x => `${x === null}`).length} ${1}", "4 1"),
]


@pytest.mark.parametrize(("text", "filled"), FILLED)
def test_a_template_is_filled(text: str, filled: Any) -> None:
    result = fill_template(parse_template(text, NAMES_TEMPLATE), NAMES_TEMPLATE)
    assert (result, type(result), repr(result)) == (filled, type(filled), repr(filled))


REFUSED_TEMPLATE = [
    ("a ${state.missing}", 5, "it is undefined; `|| 'default'` gives a value"),
    ("${state.missing}", 3, "it is undefined"),
    ("${[state.missing]}", 3, "it is undefined"),
    ("a ${[state.missing]}", 5, "it is undefined"),
    ("${1/0}", 3, "Infinity is no JSON"),
    ("a ${[0/0]}", 5, "NaN is no JSON"),
    ("${state.pair[0]}", 3, "it has half of a character"),
    ("a ${state.pair[0]}", 5, "it has half of a character"),
    ("a ${state.nothing.x}", 18, "null has no member 'x'"),
    ("ab ${item}", 6, "unknown name `item`; there are state"),
    ("ab ${state.n", 6, "`${` has no `}`"),
    ("ab ${}", 6, "it ends too early"),
    ("ab ${1}}${2 3}", 13, "unexpected `3`"),
    ("${" + "1 + " * (SOURCE_BYTES // 4) + "1}", 3, "it is longer than"),
    ("${1}" * (SOURCE_BYTES + 1), 4 * SOURCE_BYTES + 3, "its expressions are longer than"),
]


@pytest.mark.parametrize(("text", "position", "problem"), REFUSED_TEMPLATE)
def test_what_has_no_text_is_refused(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionFailed) as raised:
        fill_template(parse_template(text, NAMES_TEMPLATE), NAMES_TEMPLATE)
    assert raised.value.problem.startswith(problem)
    assert raised.value.position == position


def test_a_text_of_the_data_may_be_longer_than_one_that_is_made() -> None:
    names = {"prompt": "x" * (2 << 20)}
    assert fill_template(parse_template("${prompt}"), names) == names["prompt"]
    with pytest.raises(ExpressionFailed, match="more than 1048576 characters"):
        fill_template(parse_template("${prompt}."), names)


# Expressions that are asked one after the other share what they may cost.

# Eight long texts are half of what an expression may handle, and are made quickly.
NAMES_TOGETHER: dict[str, Any] = {"list": [0] * 8, "long": "a" * (TEXT_UNITS - 1)}
DEAR = "list.some(x => (long + '.').length < x)"


def count_asked(ask: Callable[[], object]) -> int:
    """Return how many may be asked."""
    for count in range(1000):
        try:
            ask()
        except ExpressionFailed as error:
            if "one of too many, which took too much work" in error.message:
                return count
    raise AssertionError("there is no end")


@pytest.mark.parametrize("way", ["holds", "evaluate", "fill"])
def test_dear_expressions_end_after_some(way: str) -> None:
    together = Together()
    source = f"${{{DEAR}}}" if way == "fill" else DEAR

    count = count_asked(lambda: getattr(together, way)(source, NAMES_TOGETHER))

    assert MOST < count <= 2 * MOST


def test_one_that_fails_costs_what_it_did() -> None:
    together = Together()
    hostile = "list.map(x => list.map(y => long + y))"

    assert count_asked(lambda: together.holds(hostile, NAMES_TOGETHER)) <= MOST


def test_cheap_ones_may_be_as_many_as_a_move_asks() -> None:
    together = Together()
    for _ in range(10_000):
        assert together.holds("state.n === 1 && iteration < 5", {"state": {"n": 1}, "iteration": 0})
    with pytest.raises(ExpressionFailed, match="unknown name"):
        together.holds("state.n === 1 && iteration < 5", {"state": {}})


# Texts as UTF-16 units, and what a name is.


@given(st.text(st.characters() | st.sampled_from("\ud83d\ude00\ufeff😀")))
def test_units_are_those_of_utf_16(text: str) -> None:
    units = to_units(text)
    assert len(units) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert from_units(units).encode("utf-16-le", "surrogatepass") == text.encode(
        "utf-16-le", "surrogatepass"
    )
    assert to_units(units) == units
    assert from_units(from_units(units)) == from_units(units)


# Numbers in and out of texts, beyond the table of node's answers.


# As ECMA-262 has them in Number::toString and its notes.


@given(st.floats())
def test_a_printed_number_is_read_as_the_same(number: float) -> None:
    assert text_number(number_text(number)) == number or math.isnan(number)
