"""What is refused of a text before there is data, with the character."""

import pytest

from uwf_git.engine.javascript.parser import LEVELS, parse_expression
from uwf_git.engine.javascript.values import SOURCE_BYTES, ExpressionFailed

REFUSED = [
    ("state.a = 1", 9, "JavaScript compares with ==="),
    ("state.a++", 8, "an expression cannot assign"),
    ("1 + item.a", 5, "unknown name `item`; there are depth, iteration, prompt, state"),
    ("state.a.map(x => y)", 18, "unknown name `y`"),
    ("state.constructor", 7, "`constructor` belongs to every object"),
    ('state["__proto__"]', 7, "`__proto__` belongs to every object"),
    ("state.a.slice(1)", 9, "`slice` is no method of the grammar"),
    ("parseInt(prompt)", 9, "only the methods of the grammar can be called"),
    ("state.a.includes(1, 2)", 19, "`includes` takes one argument: `,`"),
    ("state.a.map(state.f)", 18, "`map` takes a function such as x => x.ok: `.`"),
    ("state.a ?? 1 || 2", 14, "`??` beside `||` or `&&` needs brackets"),
    ("state.a and state.b", 9, "JavaScript has && for `and`"),
    ("{a: 1}", 1, "the grammar has no object literals"),
    ("/a/.test(prompt)", 1, "the grammar has no regular expressions"),
    ("'abc", 1, "a text has no closing '"),
    ("'a\\8'", 3, "unknown escape \\8"),
    ("017", 1, "a number is decimal"),
    ("", 1, "it ends too early"),
    ("`${1`", 5, "a text has no closing `"),
    ("\u00b2", 1, "unexpected '\u00b2'"),
]


@pytest.mark.parametrize(("text", "position", "problem"), REFUSED)
def test_the_error_names_the_character(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionFailed) as raised:
        parse_expression(text, {"state", "iteration", "prompt", "depth"})
    assert (raised.value.position, raised.value.code) == (position, "expression-failed")
    assert raised.value.problem.startswith(problem)
    assert raised.value.message.endswith(f"(at character {position})")


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
