"""Conditions answered without JSONata: JSONata's answer, or none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.test_expression import CONDITIONS, CONTEXT
from engine.test_jsonata_functions import DATASETS, cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonata.jsonata import Jsonata
from model.telling import tell_cases

from uwf_git.engine.expression import _own_value, evaluate_condition, split_template
from uwf_git.engine.moderator import NotPlain, plainly_holds
from uwf_git.errors import Refused

TEMPLATES = Path(__file__).parent / "made_up" / "jsonata_templates.json"


def test_templates_of_jsonata(golden: Callable[[str, str], None]) -> None:
    answers = {"split_template": lambda source: list(split_template(source))}
    golden("engine/jsonata_templates.txt", tell_cases(TEMPLATES, answers))


def plain_answer(condition: str, context: Any) -> bool | None:
    try:
        return plainly_holds(condition, context)
    except NotPlain:
        return None


PLAIN = [
    ("meta.approved = false", True),
    ("  meta . yes\n", True),
    ("meta.missing.deeper", False),
    ("`meta`.`yes`", True),
    ("meta.approved = false and depth < 6", True),
    ("meta.approved or depth < 3 or role = 'x' and true", False),
    ("((meta.yes))", True),
    ("$not(meta.yes)", False),
    ("$not ( $exists(meta.missing) )", True),
    ("$count(meta.missing) = 0", True),
    ("$count(meta.none) = 1", True),
    ("$exists(meta.empty)", True),
    ('role in ["tester", "reviewer"]', True),
    ("'b' in meta.tags", True),
    ("depth in [1, -3]", False),
    ('role > "a"', True),
    ("meta.count = 1.0e0", True),
    ("meta.yes = 1", False),
    ("meta.half > -0.5", True),
    ("depth = 3 = true", True),
    ("meta.tags", True),
]

NOT_PLAIN = [
    *CONDITIONS["reads a step"],
    "",
    " ",
    "meta.deep.y",
    "meta.tags = 'a'",
    "meta = meta",
    "role < 3",
    "meta.none < 3",
    "meta.yes < meta.missing",
    "depth + 1 > 3",
    "-depth < 0",
    "meta.text = 'a\\u0062c'",
    "meta.yes /* yes */",
    "meta.'yes'",
    "meta.true",
    "meta.and",
    "in = 1",
    "1.x",
    "'meta'.yes",
    "meta.yes == true",
    "$uppercase(role) = 'A'",
    "$count(meta.tags, 1)",
    "$exists()",
    "$not",
    "()",
    "(true; false)",
    "(meta).yes",
    "role in []",
    "depth = 9007199254740993",
    "depth = 9007199254740992",
    "depth = 1e400",
    "true)",
    "(true",
    "1 2",
    "1" + " or 1" * 50,
    "role = '" + "x" * 1000 + "'",
]


def test_a_plain_condition_has_its_answer() -> None:
    for condition, answer in PLAIN:
        assert plain_answer(condition, CONTEXT) is answer
        assert evaluate_condition(condition, CONTEXT) is answer


def test_what_is_not_plain_is_left_to_jsonata() -> None:
    for condition in NOT_PLAIN:
        assert plain_answer(condition, CONTEXT) is None


def test_no_answer_of_the_tables_differs() -> None:
    for condition in [*CONDITIONS["true"], *CONDITIONS["false"]]:
        assert plain_answer(condition, CONTEXT) in (None, condition in CONDITIONS["true"])


def test_no_answer_differs_from_the_test_suite_of_jsonata() -> None:
    answered = 0
    for case in cases():
        data = case.get("data", DATASETS.get(case.get("dataset"), {}))
        if case.get("bindings") or not isinstance(data, dict):
            continue
        told = plain_answer(case["expr"], data)
        if told is not None:
            answered += 1
            assert "error" not in case, case
            expected = Jsonata.boolize(_own_value(case["result"])) if "result" in case else False
            assert told is expected, case
    assert answered > 100


NAMES = ["a", "b", "é", "a b", "", "and"]
HOSTILE = "'\"`\\/*.,;:?!~^%&|@#$+-<=>()[]{} \n\x0b\u00a0\u2028é\u0663🙂\ud83d0e_"

scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from(
        [0, 1, -1, 0.5, 1.0, -0.0, 2**53, 2**53 + 1, 10**20, 1e20, "", "a", "1", "🙂"]
    )
    | st.floats()
    | st.text("aé🙂", max_size=2)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
contexts = st.fixed_dictionaries({"a": values}, optional=dict.fromkeys(NAMES[1:], values))

names = st.sampled_from(["a", "b", "é", "`a b`", "``", "`and`"])
paths = st.lists(names, min_size=1, max_size=3).map(".".join)
numbers = st.sampled_from(["0", "1", "-1", "0.5", "1e0", "1E+2", "- 1"])
texts = st.sampled_from(["''", "'a'", '"é"', '"1"', '"🙂"'])
plain_operands = paths | paths | numbers | texts | st.sampled_from(["true", "false", "null"])

odd_names = st.sampled_from(
    ["and", "in", "true", "null", "history", "function", "$", "λ", "\u0663"]
)
odd_operands = (
    st.lists(names | odd_names | odd_names.map("`{}`".format), min_size=1, max_size=3).map(".".join)
    | st.sampled_from(["01", "1.", ".5", "1e400", "1a", "--1", "\u0663", "9007199254740993"])
    | st.text("aé🙂'\"\\n", max_size=3).map(json.dumps)
    | st.sampled_from(["'\\'", "[]", "$", "$$", "()", "a[0]", "'a'.b", "a.'b'"])
)
PLAIN_SIGNS = ["=", "!=", "<", "<=", ">", ">=", "in", "and", "or"]
PLAIN_CALLS = ["(", "$not(", "$exists(", "$count(", "$not ("]
ODD_SIGNS = ["+", "&", "-", "?:", "??", ".", "~>", "=="]
ODD_CALLS = ["$boolean(", "a(", "$(", "$$.("]


def combined(
    signs: list[str], calls: list[str], spaces: list[str]
) -> Callable[[st.SearchStrategy[str]], st.SearchStrategy[str]]:
    """Return what makes longer conditions of shorter ones."""

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        space = st.sampled_from(spaces)
        infix = st.tuples(inner, space, st.sampled_from(signs), space, inner)
        called = st.tuples(st.sampled_from(calls), space, inner, space)
        listed = st.lists(inner, min_size=1, max_size=3).map(lambda items: f"[{','.join(items)}]")
        return (
            infix.map(lambda parts: (" " if parts[2].isalpha() else "").join(parts))
            | called.map(lambda parts: "".join(parts) + ")")
            | listed
        )

    return grown


plain = st.recursive(
    plain_operands, combined(PLAIN_SIGNS, PLAIN_CALLS, ["", "", " ", "\n", "\t "]), max_leaves=5
)
odd = st.recursive(
    plain_operands | odd_operands,
    combined(PLAIN_SIGNS + ODD_SIGNS, PLAIN_CALLS + ODD_CALLS, ["", " ", "/* c */", "\u00a0"]),
    max_leaves=5,
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """Return a plain condition with a character put in the place of a few."""
    text = draw(plain)
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from(HOSTILE)) + text[place + draw(st.integers(0, 2)) :]


def check(condition: str, context: dict[str, Any]) -> None:
    told = plain_answer(condition, context)
    if told is not None:
        try:
            assert told is evaluate_condition(condition, context)
        except Refused as error:
            pytest.fail(f"plain says {told}, JSONata: {error.message}")


@settings(deadline=None)
@given(condition=plain, context=contexts)
@example(condition='$not(a) or "a" in b', context={"a": False, "b": ["a"]})
@example(condition="a = - 0", context={"a": -0.0})
def test_a_plain_answer_is_the_one_of_jsonata(condition: str, context: dict[str, Any]) -> None:
    check(condition, context)


@settings(deadline=None)
@given(condition=odd | spoilt() | st.text(HOSTILE + "a1", max_size=12), context=contexts)
def test_no_odd_text_has_another_answer_than_jsonata(
    condition: str, context: dict[str, Any]
) -> None:
    check(condition, context)
