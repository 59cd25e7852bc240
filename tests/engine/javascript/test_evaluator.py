"""What the evaluator promises beside node's answers: kinds of results, and where an error is."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from uwf_git.engine.javascript.evaluator import (
    Reader,
    call_method,
    evaluate,
)
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import (
    TEXT_UNITS,
    UNDEFINED,
    Budget,
    ExpressionFailed,
    Unanswerable,
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
