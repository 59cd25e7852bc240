import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.reply import BadJson, parse_strict_json, parse_strict_json_at
from uwf_git.model.node import canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(VALUES)
def test_any_value_comes_back_in_the_form_that_nodes_hold(value: Any) -> None:
    assert parse_strict_json(json.dumps(value)) == canonical(value)


@given(st.text())
def test_any_text_gives_a_value_or_one_line_of_complaint(text: str) -> None:
    message = ""
    try:
        parse_strict_json(text)
    except BadJson as error:
        message = error.message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"expecting value \(line 1, column 1\)"),
        ('{"a": }', r"expecting value \(line 1, column 7\)"),
        ('{\n"a": 1,\n}', r"line 3, column 1|line 2, column 7"),
        ("{'a': 1}", "property name enclosed in double quotes"),
        ('{"a": 1} x', "there is more text after the value on line 1"),
        ('{"a": 1}\n\n{"b": 2}', "there is more text after the value on line 3"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' is there twice"),
        ('{"x": [{"a": 1, "a": 1}]}', "the key 'a' is there twice"),
        ('{"meta": {"n": [1, NaN]}}', r"the value at \$\.meta\.n\[1\] is nan"),
        ('{"n": -Infinity}', r"the value at \$\.n is -inf"),
        ('{"n": 1e999}', r"the value at \$\.n is inf"),
        ('{"n": 1' + "0" * 400 + "}", r"the value at \$\.n is a number no 64-bit float can hold"),
        ('{"n": ' + "1" * 5000 + "}", "a number has too many digits"),
        ('{"s": ["\\ud800"]}', r"the value at \$\.s\[0\] has a lone surrogate"),
        ('{"\\udfff": 1}', r"the value at \$ has a lone surrogate"),
        ('"a\nb"', "control character"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("[" * 600 + "]" * 600, "nested more than 500 levels"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_value_that_no_node_can_hold_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadJson, match=problem):
        parse_strict_json(text)


def test_large_integers_are_canonical() -> None:
    assert parse_strict_json("123456789012345678901") == 123456789012345680000.0
    assert parse_strict_json("-0.0") == 0
    assert parse_strict_json(' {"e": "\\ud83d\\ude00"}\n') == {"e": "😀"}


def test_value_is_read_where_it_stands() -> None:
    text = 'so: {"a": [1]} and more'

    assert parse_strict_json_at(text, 3) == ({"a": [1]}, 14)
