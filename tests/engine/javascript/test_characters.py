"""Texts as UTF-16 units, and what a name is."""

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.javascript.values import from_units, has_surrogate, name_end, to_units

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
