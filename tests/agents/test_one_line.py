import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.reply import on_one_line, show_beginning


@given(st.text())
def test_line_is_safe_to_print_anywhere(text: str) -> None:
    assert on_one_line(text).isprintable()
    assert on_one_line(on_one_line(text)) == on_one_line(text)


@given(st.text(), st.integers(1, 100))
def test_beginning_is_short(text: str, limit: int) -> None:
    assert len(show_beginning(text, limit=limit)) <= limit + 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("short", "short"),
        ("a\r\n\x1b[31mb\x1b[0m\u2028c", "a [31mb [0m c"),
        ("x" * 13, "x" * 13),
        ("x" * 14, "x" * 13 + "…"),
        ("x" + " " * 100, "x…"),
    ],
)
def test_omission_is_marked(text: str, shown: str) -> None:
    assert show_beginning(text, limit=13) == shown
