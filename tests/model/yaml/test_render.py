import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from uwf_git.model.yaml_reader import parse_yaml
from uwf_git.model.yaml_render import render_yaml, resolve_plain

# Text as agents write it, and text with characters that have a meaning in YAML.
texts = st.one_of(
    st.text(),
    st.text(alphabet="ab \n\t:#-'\"|>.\\1e0xo~?\r&*[]{},%@`", max_size=15),
    st.sampled_from(["yes", "No", "on", "=", "<<", "12:30", "2024-01-01", "1_000", "0o7", "---"]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)


@given(values)
@example("\t0\n")
@example("  first line is indented\nsecond\n")
@example("\n\nblank lines first")
@example("blank lines last\n\n\n")
@example("blanks at the end  \n  \nof lines")
@example({"x" * 2000: {"y" * 2000: ["z"]}})
@example([[[["a\nb"]], {"c": "d\ne"}]])
def test_written_value_is_read_back(value: Any) -> None:
    # repr distinguishes 1 from True and 1.0, and shows the order of keys.
    assert repr(parse_yaml(render_yaml(value)).value) == repr(value)


@given(st.lists(texts))
def test_readers_of_yaml_1_1_see_the_same_text(strings: list[str]) -> None:
    # U+0085 and the like are written as escapes, which every reader keeps.
    assert yaml.safe_load(render_yaml(strings)) == strings


@pytest.mark.parametrize(("length", "first"), [(500, "x"), (501, "?")])
def test_key_of_more_than_500_characters_has_a_line_of_its_own(length: int, first: str) -> None:
    assert render_yaml({"x" * length: 1})[0] == first


def test_control_characters_reach_no_terminal() -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_yaml("\x1b[31mred\x07\n\x9b"))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_invalid_json_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_yaml([number])


def test_marks_of_direction_are_escaped_and_read_back() -> None:
    for mark in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069":
        value = {f"a{mark}": [f"{mark}b", f"two\nlines{mark}\n"]}
        text = render_yaml(value)
        assert mark not in text
        assert parse_yaml(text).value == value


TEXTS = [
    *("nULL", "tRUE", "0o8", "0xG", "-0x3A", "1e", ".", "..", "-", "+", "-.", ".e3", "1.2.3"),
    # What YAML 1.1 reads as something else, and digits that are not ASCII
    *("y", "n", "yes", "no", "No", "on", "off", "12:30", "190:20:30", "2024-01-01"),
    *("2024-01-01 10:00:00", "1_000", "0b101", "=", "<<", "١٢", "12 "),
]
GOLDEN: list[tuple[str, object]] = [
    # YAML 1.2.2, section 10.3.2
    ("", None),
    ("~", None),
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("false", False),
    ("False", False),
    ("FALSE", False),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("-19", -19),
    ("007", 7),
    ("017", 17),
    ("0o7", 7),
    ("0o17", 15),
    ("0x3A", 58),
    ("0xfF", 255),
    ("0.", 0.0),
    ("-0.0", -0.0),
    (".5", 0.5),
    ("+12e03", 12000.0),
    ("-2E+05", -200000.0),
    ("12e-2", 0.12),
    *((text, text) for text in TEXTS),
]


@pytest.mark.parametrize(("text", "value"), GOLDEN)
def test_plain_scalar_follows_yaml_1_2(text: str, value: object) -> None:
    resolved = resolve_plain(text)
    assert (repr(resolved), type(resolved)) == (repr(value), type(value))


@pytest.mark.parametrize("text", [".inf", "+.INF", "-.Inf", "1e999", "9" * 400, "0x" + "f" * 300])
def test_number_beyond_floats_comes_back_infinite(text: str) -> None:
    assert math.isinf(float(resolve_plain(text) or 0))


def test_number_of_five_thousand_digits_does_not_raise() -> None:
    assert resolve_plain("0" * 5000 + "12") == 12
    assert resolve_plain("-" + "9" * 5000) == -math.inf
