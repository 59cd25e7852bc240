"""Texts as UTF-16 units, and what a name is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.javascript.values import (
    divided,
    from_units,
    has_surrogate,
    name_end,
    number_text,
    remainder,
    text_number,
    to_units,
)

ANY_TEXT = st.text(st.characters() | st.sampled_from("\ud83d\ude00\ufeff😀"))


@given(ANY_TEXT)
def test_units_are_those_of_utf_16(text: str) -> None:
    units = to_units(text)
    assert len(units) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert from_units(units).encode("utf-16-le", "surrogatepass") == text.encode(
        "utf-16-le", "surrogatepass"
    )
    assert to_units(units) == units
    assert from_units(from_units(units)) == from_units(units)


def test_a_pair_is_no_lone_surrogate() -> None:
    assert not has_surrogate(from_units("\ud83d\ude00"))
    assert has_surrogate(from_units("\ude00\ud83d"))


def test_where_a_name_ends() -> None:
    for name in ("item", "_", "$x1", "größe", "名前", "a\u0301", "x\u200c", "x\u200d"):
        assert name_end(f"{name}-b", 0) == len(name)
    assert [name_end(text, 0) for text in ("", "1a", "²")] == [0, 0, 0]


# Numbers in and out of texts, beyond the table of node's answers.


# As ECMA-262 has them in Number::toString and its notes.
PRINTED = [
    (0.0, "0"),
    (-0.0, "0"),
    (1.0, "1"),
    (-1.5, "-1.5"),
    (0.1 + 0.2, "0.30000000000000004"),
    (2.0**53, "9007199254740992"),
    (2.0**63, "9223372036854776000"),
    (123456789012345680000.0, "123456789012345680000"),
    (1e20, "100000000000000000000"),
    (1e21, "1e+21"),
    (1.5e300, "1.5e+300"),
    (1e-6, "0.000001"),
    (1.25e-6, "0.00000125"),
    (1e-7, "1e-7"),
    (-1.25e-7, "-1.25e-7"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
    (math.nan, "NaN"),
]


def test_a_number_is_printed_as_javascript_does() -> None:
    for number, text in PRINTED:
        assert number_text(number) == text


@given(st.floats())
def test_a_printed_number_is_read_as_the_same(number: float) -> None:
    assert text_number(number_text(number)) == number or math.isnan(number)


@pytest.mark.parametrize(
    "text", ["1_0", "1e", "--1", "+0x1", "1n", "0x", "1 2", "inf", "nan", "\u0661"]
)
def test_what_python_reads_and_javascript_does_not_is_nan(text: str) -> None:
    assert math.isnan(text_number(text))


def test_dividing_by_zero_keeps_the_sign() -> None:
    assert divided(1, -0.0) == divided(-1, 0.0) == -math.inf
    assert divided(-1, -0.0) == math.inf
    assert math.isnan(divided(0, 0))
    assert math.isnan(remainder(1, 0))
    assert math.copysign(1, remainder(-4, 2)) == -1
