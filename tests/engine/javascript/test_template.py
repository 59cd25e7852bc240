"""Templates: alone an expression keeps its type, within text it is printed."""

from typing import Any

import pytest

from uwf_git.engine.javascript.evaluator import fill_template, parse_template
from uwf_git.engine.javascript.values import SOURCE_BYTES, ExpressionFailed

NAMES: dict[str, Any] = {
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
    result = fill_template(parse_template(text, NAMES), NAMES)
    assert (result, type(result), repr(result)) == (filled, type(filled), repr(filled))


REFUSED = [
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


@pytest.mark.parametrize(("text", "position", "problem"), REFUSED)
def test_what_has_no_text_is_refused(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionFailed) as raised:
        fill_template(parse_template(text, NAMES), NAMES)
    assert raised.value.problem.startswith(problem)
    assert raised.value.position == position


def test_a_text_of_the_data_may_be_longer_than_one_that_is_made() -> None:
    names = {"prompt": "x" * (2 << 20)}
    assert fill_template(parse_template("${prompt}"), names) == names["prompt"]
    with pytest.raises(ExpressionFailed, match="more than 1048576 characters"):
        fill_template(parse_template("${prompt}."), names)
