"""Hostile expressions end at a count, long before the limits of a fork."""

from typing import Any

import pytest

from uwf_git.agents.limited_fork import DEFAULT, RunLimits, run_limited
from uwf_git.engine.javascript.evaluator import evaluate
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import (
    EVALUATIONS,
    TEXT_UNITS,
    Budget,
    ExpressionFailed,
    Unanswerable,
)
from uwf_git.errors import UwfError

BIG = "a" * TEXT_UNITS
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]

NAMES: dict[str, Any] = {
    "big": BIG,
    "wide": "é😀" * (TEXT_UNITS // 3),
    "short": "a" * 2499,
    "middle": "a" * 29_999,
    "digits": "1" * TEXT_UNITS,
    "list": list(range(1000)),
    "many": [1] * 300_000,
    "texts": ["a" * 10_000 + str(each) for each in range(100)],
    "deep": DEEP,
}


def _searching(where: str, part: int) -> str:
    sought = "a" * part + "b" + "a" * part
    return f"['{sought}'].map(n => list.map(x => list.map(y => {where}.includes(n))))"


HOSTILE = [
    "list.map(a => list.map(b => list.map(c => 1)))",
    "['a']" + ".map(x => x + x)" * 40,
    "['a']" + ".map(x => `${x}${x}`)" * 40,
    "['a']" + ".map(x => [x, x].join())" * 30,
    "['ŉ']" + ".map(x => (x + x).toUpperCase())" * 30,
    "[[1]]" + ".map(x => [x, x])" * 40,
    "texts.map(x => texts.join(x))",
    "list.join(big)",
    "list.map(x => list.map(y => big.includes('b')))",
    _searching("short", 600),
    _searching("middle", 49),
    _searching("big", 4900),
    "list.map(x => many.includes(2))",
    "list.map(x => Object.keys(many))",
    "list.map(x => big.toUpperCase())",
    "list.map(x => wide.toUpperCase())",
    "list.map(x => wide.trim())",
    "list.map(x => +digits)",
    "list.map(x => digits == 1)",
    "list.map(x => digits < 1)",
    "list.map(x => list.map(y => big === `${big}`))",
    "list.map(x => list.map(y => big < big))",
    "list.map(x => [big].includes(big + ''))",
    "many.map(x => x)",
    "list.map(x => many)",
    "list.map(x => big)" + ".map(x => x + '.')",
    "deep",
    "deep.join()",
    "wide + wide",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_expressions_end_within_the_limits_of_a_fork(text: str) -> None:
    expression = parse_expression(text, NAMES)
    # A slow machine gets a second more of processor time.
    limits = RunLimits(memory_bytes=200 << 20, cpu_s=DEFAULT.cpu_s + 1, wall_s=60)
    with pytest.raises(UwfError) as raised:
        run_limited(lambda: evaluate(expression, NAMES), limits=limits)
    assert raised.value.code == ExpressionFailed.code


@pytest.mark.parametrize(
    "text",
    [
        "list.map(x => x).length",
        "list.filter(x => x > 990).map(x => `${x}`).join(', ')",
        "texts.filter(x => x.endsWith('7')).length",
        "many.includes(2)",
        "big.length + big.toUpperCase().length",
        "big.includes('b') || big.startsWith('aa')",
        "wide.includes('x')",
        "many.length",
        "deep[0][0][0].length",
    ],
)
def test_what_is_meant_well_has_an_answer(text: str) -> None:
    evaluate(parse_expression(text, NAMES), NAMES)


def test_the_limits_are_the_promised_ones() -> None:
    full = "x" * TEXT_UNITS
    names: dict[str, Any] = {"full": full, "list": [0] * (EVALUATIONS - 3)}
    assert evaluate(parse_expression("full[0] + full.trim()[0]"), names) == "xx"
    with pytest.raises(ExpressionFailed, match="a text of more than 1048576 characters"):
        evaluate(parse_expression("full + 'x'"), names)
    assert len(evaluate(parse_expression("list.map(x => x)"), names)) == EVALUATIONS - 3
    names["list"].append(0)
    with pytest.raises(ExpressionFailed, match="more than 100000 evaluations"):
        evaluate(parse_expression("list.map(x => x)"), names)


def test_expressions_can_share_a_budget() -> None:
    budget = Budget()
    expression = parse_expression("list.map(x => x).length")
    names = {"list": [0] * 60_000}
    evaluate(expression, names, budget)
    with pytest.raises(ExpressionFailed, match="evaluations"):
        evaluate(expression, names, budget)
    with pytest.raises(Unanswerable, match="elements"):
        budget.visit(500_000)
