"""Texts as UTF-16 units, and what a name is."""

import math

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.javascript.values import (
    from_units,
    number_text,
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


# Numbers in and out of texts, beyond the table of node's answers.


# As ECMA-262 has them in Number::toString and its notes.


@given(st.floats())
def test_a_printed_number_is_read_as_the_same(number: float) -> None:
    assert text_number(number_text(number)) == number or math.isnan(number)
