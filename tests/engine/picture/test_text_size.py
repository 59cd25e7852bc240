from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.picture.labels import ELLIPSIS, columns, cut, wrap
from uwf_git.model.text import one_line

LINES = st.text(st.characters(), max_size=200).map(one_line)


def test_lines_break_between_words_and_are_indented() -> None:
    assert wrap("1. one two three", 9, "   ") == ["1. one", "   two", "   three"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("登录功能", 4) == ["登录", "功能"]
    assert wrap("", 4) == [""]


@given(LINES, st.integers(6, 60))
def test_wrapping_keeps_all_words_within_the_width(text: str, room: int) -> None:
    lines = wrap(text, room, "   ")
    assert all(columns(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(LINES, st.integers(1, 60))
def test_cutting_keeps_the_beginning_within_the_width(text: str, room: int) -> None:
    shown = cut(text, room, columns)
    assert columns(shown) <= room
    assert shown == text or (shown.endswith(ELLIPSIS) and text.startswith(shown[:-1]))
