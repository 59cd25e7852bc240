"""What is refused of a text before there is data, with the character."""

from collections.abc import Callable
from pathlib import Path

import pytest
from model.telling import tell_cases

from uwf_git.engine.javascript.parser import LEVELS, parse_expression
from uwf_git.engine.javascript.values import SOURCE_BYTES, ExpressionFailed

REFUSED = Path(__file__).parents[1] / "made_up" / "refused_expressions.json"


def test_the_error_names_the_character(golden: Callable[[str, str], None]) -> None:
    names = {"state", "iteration", "prompt", "depth"}
    answers = {"parse_expression": lambda text: str(parse_expression(text, names))}
    golden("engine/refused_expressions.txt", tell_cases(REFUSED, answers))


def test_an_expression_reads_names_from_outside_and_those_of_its_functions() -> None:
    text = "a.map(x => x + b.map((y, a) => y * a * x)).join(c) + x"
    names = {"a", "b", "c", "x"}
    assert parse_expression(text, names)
    for name in names:
        with pytest.raises(ExpressionFailed, match=f"unknown name `{name}`"):
            parse_expression(text, names - {name})


DEEP = [
    ("(" * LEVELS + "1" + ")" * LEVELS, "(" * (LEVELS - 1) + "1" + ")" * (LEVELS - 1)),
    ("!" * LEVELS + "1", "!" * (LEVELS - 1) + "1"),
    ("[" * (LEVELS + 1) + "]" * (LEVELS + 1), "[" * LEVELS + "]" * LEVELS),
    ("0 ? 0 : " * LEVELS + "1", "0 ? 0 : " * (LEVELS - 1) + "1"),
    ("[1]" + ".map(x => [1]" * 50 + ")" * 50, "[1]" + ".map(x => [1]" * 30 + ")" * 30),
    ("`${" * LEVELS + "1" + "}`" * LEVELS, "`${" * (LEVELS - 1) + "1" + "}`" * (LEVELS - 1)),
    ("state[" * LEVELS + "1" + "]" * LEVELS, "state[" * (LEVELS - 1) + "1" + "]" * (LEVELS - 1)),
]


@pytest.mark.parametrize(("too_deep", "deep_enough"), DEEP)
def test_levels_are_limited(too_deep: str, deep_enough: str) -> None:
    parse_expression(deep_enough)
    with pytest.raises(ExpressionFailed, match=f"more than {LEVELS} levels deep"):
        parse_expression(too_deep)


@pytest.mark.parametrize("long", ["1" + "+1" * 8000, "state" + ".a" * 8000, "1||" * 5000 + "1"])
def test_a_long_chain_is_not_deep(long: str) -> None:
    parse_expression(long)


def test_the_length_is_limited_in_bytes() -> None:
    parse_expression("'" + "é" * (SOURCE_BYTES // 2 - 1) + "'")
    with pytest.raises(ExpressionFailed, match="longer than 16384 bytes"):
        parse_expression("'" + "é" * (SOURCE_BYTES // 2) + "'")
    with pytest.raises(ExpressionFailed, match="longer than 16384 bytes"):
        parse_expression(" " * SOURCE_BYTES + "1")
