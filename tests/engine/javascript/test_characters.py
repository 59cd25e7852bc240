"""Texts as UTF-16 units, and what a name is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.javascript.values import from_units, has_surrogate, is_name, to_units

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


@pytest.mark.parametrize("name", ["item", "_", "$x1", "größe", "名前", "a\u0301", "x\u200d", "of"])
def test_a_name(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "text", ["", "1a", "a-b", "a b", "a ", "this", "let", "undefined", "²", "é!"]
)
def test_no_name(text: str) -> None:
    assert not is_name(text)
