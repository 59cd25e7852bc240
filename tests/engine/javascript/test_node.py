"""Node itself: the table is still its answer, and so is what we answer to texts by chance."""

import json
import random
from typing import Any

import pytest
from engine.javascript.chance import Expressions, draw_names, mutate
from engine.javascript.node import PROGRAM, TABLE, Node
from engine.javascript.told import REFUSED, ours

from uwf_git.engine.javascript import values
from uwf_git.engine.javascript.evaluator import fill_template, parse_template
from uwf_git.engine.javascript.values import ExpressionFailed, name_end

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no node")


@pytest.mark.parametrize("part", ["answered", "refused"])
def test_the_table_is_what_node_says(part: str) -> None:
    table = json.loads(TABLE.read_text())
    texts = [text for text, _ in table[part]]
    with Node() as node:
        answers = node.ask(texts, table["names"])
    assert list(map(list, zip(texts, answers, strict=True))) == table[part]


def test_expressions_by_chance_have_nodes_answer_or_none() -> None:
    chance = random.Random(1)
    with Node() as node:
        answered = sum(compare(node, chance) for _ in range(30))
    assert answered > 500


def count_answers(node: Node, texts: list[str], names: dict[str, Any]) -> int:
    """Compare our answers with those of node; return how many we have."""
    mine = [ours(text, names) for text in texts]
    compared = zip(texts, node.ask(texts, names), mine, strict=True)
    assert [each for each in compared if each[2] not in (each[1], REFUSED)] == [], names
    return len(mine) - mine.count(REFUSED)


def compare(node: Node, chance: random.Random) -> int:
    """Compare some expressions, whole and broken, on new data; return how many have an answer."""
    names = draw_names(chance)
    expressions = Expressions(chance)
    texts = [expressions.draw(chance.choice((1, 2, 2, 3, 4))) for _ in range(60)]
    texts += [mutate(chance, text) for text in texts[:30]]
    return count_answers(node, texts, names)


KINDS = [
    *("null", "undefined", "true", "false", "0", "-0", "1", "NaN", "Infinity", "-Infinity", "1e21"),
    *("''", "'0'", "'1'", "' '", "'a'", "'true'", "'null'", "'NaN'", "'-0'", "'\\ud83d'", "'😀'"),
    *("'\\uffff'", "'\\u2003 1'", "[]", "[0]", "[[]]", "state"),
]
OPERATORS = "=== !== == != < <= > >= + - * / % && || ??"
ON_ONE = [
    *("!{}", "-{}", "+{}", "typeof {}", "`${{{}}}`", "[{0}].includes({0})", "'x'.includes({})"),
    *("({}).length", "({})[0]", "({})?.x", "state[{}]", "'abc'[{}]", "[1, 2][{}]", "[[{}]].join()"),
    *("({}).trim()", "({}).includes(0)", "({}).startsWith('')", "[1, 2].join({})", "({}) ? 1 : 2"),
    *("[{}].find(x => true)", "[{}].map((x, i) => x + i)", "Object.keys({})", "Array.isArray({})"),
]


def test_every_operator_on_every_kind_has_nodes_answer_or_none() -> None:
    texts = [f"{a} {each} {b}" for each in OPERATORS.split() for a in KINDS for b in KINDS]
    texts += [form.format(kind) for form in ON_ONE for kind in KINDS]
    names = {"state": {"a": 1, "null": 2, "0": 3, "true": 4, "": 5, "😀": 6}}
    with Node() as node:
        assert count_answers(node, texts, names) > 10_000


# A sigma at the end of a word has another lower case; what is a word is Unicode's business.
SIGMAS = (
    "Σ|ΩΣ|ΩΣΩ|A.Σ|Σ.A|ΩΣ́|ΩΣ́Ω|ΩΣ\u2019Ω|ΩΣ·|ΩΣ:Ω|𐐀Σ|Σ𐐀|ªΣ|ⅠΣ|ⓐΣ|ΩΣ😀|ΩΣ😀Ω|\ud83dΣ|Ω\ud83dΣ|ΩΣ\ud83dΩ|"
    "ΩΣ\u200dΩ|ΩΣ\ufe0f| Σ|1Σ|_Σ|ᾼΣ|\u0345Σ|Ω\u0345Σ|ΩΣˈΩ|ΩΣ^Ω|ΩΣ\u00adΩ|İΣ|ΣΣ|ΣΣΣ|ʰΣ|ΩΣʰ|ﬀΣ|ǅΣ|ₐΣ"
)


def test_a_sigma_ends_a_word_as_in_node() -> None:
    texts = [f"'{each}'.toLowerCase()" for each in SIGMAS.split("|")]
    with Node() as node:
        # Refused are those beside half of a pair, and beside Deseret.
        assert count_answers(node, texts, {}) == len(texts) - 5


def test_templates_by_chance_have_nodes_texts_or_none() -> None:
    chance = random.Random(2)
    with Node() as node:
        filled = sum(compare_filled(node, chance) for _ in range(15))
    assert filled > 200


def compare_filled(node: Node, chance: random.Random) -> int:
    """Compare the texts of some values; return how many have one."""
    names = draw_names(chance)
    expressions = Expressions(chance)
    texts = [expressions.draw(chance.choice((0, 1, 2))) for _ in range(60)]
    count = 0
    for text, theirs in zip(texts, node.ask(texts, names, filled=True), strict=True):
        mine = _filled(text, names)
        assert mine is None or {"s": mine} == theirs, (text, names)
        count += mine is not None
    return count


def _filled(text: str, names: dict[str, Any]) -> str | None:
    try:
        return str(fill_template(parse_template(f".${{{text}}}"), names))[1:]
    except ExpressionFailed:
        return None


def test_what_values_inherit_is_refused() -> None:
    owners = ("Object", "Array", "String", "Number", "Boolean")
    asked = [f"Object.getOwnPropertyNames({owner}.prototype)" for owner in owners]
    with Node() as node:
        told = [{each["s"] for each in names["a"]} for names in node.ask(asked, {})]
    none: frozenset[str] = frozenset()
    lists = (none, values.ARRAY, values.TEXT, values.NUMBER, none)
    for names, listed in zip(told, lists, strict=True):
        assert names - {"length"} <= listed | values.OBJECT


def test_names_are_nodes_names() -> None:
    letters = [chr(code) for code in [*range(0x3000), *range(0xA000, 0xA900), 0x1F600, 0x10400]]
    names = [f"a{letter}" for letter in letters if name_end(f"a{letter}", 0) > 1]
    names += [letter for letter in letters if name_end(letter, 0)]
    with Node() as node:
        answers = node.ask([f"[1].map({name} => {name})[0]" for name in names], {})
    assert [name for name, each in zip(names, answers, strict=True) if each != {"n": "1"}] == []


@pytest.mark.parametrize("method", ["toUpperCase", "toLowerCase"])
def test_every_letter_has_nodes_other_case(method: str) -> None:
    all_changed = (
        "Array.from({length: 0x110000}, (_, code) => String.fromCodePoint(code))"
        f".filter(each => each !== each.{method}())"
    )
    with Node() as node:
        (changed,) = node.ask([all_changed], {})
        letters = sorted({each["s"] for each in changed["a"]} | set(_changed_here(method)))
        # 55 are refused, of which this node may know none.
        assert count_answers(node, [f"'{letter}'.{method}()" for letter in letters], {}) > 1350


def _changed_here(method: str) -> list[str]:
    change = str.upper if method == "toUpperCase" else str.lower
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return [each for each in everything if change(each) != each]
