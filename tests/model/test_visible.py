import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.text import visible_block, visible_line

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("日本 é 👩\u200d💻", "日本 é 👩\u200d💻"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\tb\nc\rd", "a\\tb\\nc\\rd"),
        ("\u202etxt.exe\u2066", "\\u202etxt.exe\\u2066"),
        ("\udcff", "\\udcff"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
    ],
)
def test_terminal_control_is_spelled_out(text: str, line: str) -> None:
    assert visible_line(text) == line


@given(ANY_TEXT)
def test_line_is_one_line_without_controls_that_every_stream_takes(text: str) -> None:
    line = visible_line(text)

    assert len(line.splitlines()) <= 1
    assert {unicodedata.category(character) for character in line}.isdisjoint({"Cc", "Cs"})
    assert line.encode().decode() == line


@given(ANY_TEXT)
def test_block_has_no_control_but_newline_and_tab(text: str) -> None:
    for line in visible_block(text).replace("\t", " ").split("\n"):
        assert visible_line(line) == line


@given(ANY_TEXT)
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    assert visible_line(visible_line(text)) == visible_line(text)
