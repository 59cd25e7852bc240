"""What the evaluator promises beside node's answers: kinds of results, and where an error is."""

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engine.javascript.node import TABLE
from engine.javascript.told import REFUSED, ours
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

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

TEMPLATES = Path(__file__).parents[1] / "made_up" / "templates.json"


NAMES: dict[str, Any] = {"state": {"a": [1, {"b": "x"}], "n": 3.0, "big": 2**60 + 1, "s": "😀"}}


def test_values_templates_and_what_is_refused(golden: Callable[[str, str], None]) -> None:
    def fill(text: str) -> object:
        return fill_template(parse_template(text, NAMES_TEMPLATE), NAMES_TEMPLATE)

    answers = {
        "evaluate": lambda text: evaluate(parse_expression(text), NAMES),
        "fill_template": fill,
    }
    golden("engine/templates.txt", tell_cases(TEMPLATES, answers))


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


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("${" + "1 + " * (SOURCE_BYTES // 4) + "1}", 3, "it is longer than"),
        ("${1}" * (SOURCE_BYTES + 1), 4 * SOURCE_BYTES + 3, "its expressions are longer than"),
    ],
    ids=["one", "all"],
)
def test_expressions_of_a_template_are_limited(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionFailed) as raised:
        fill_template(parse_template(text, {}), {})
    assert raised.value.problem.startswith(problem)
    assert raised.value.position == position
