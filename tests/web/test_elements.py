"""Foreign text in elements: escaped, spelled out, and never lost."""

from html import unescape
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from web.allowed import HOSTILE_SIGNS, Parsed

from uwf_git.web.entries import (
    code,
    difference,
    escape_line,
    json_fields,
    json_value,
    line,
    preformatted,
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.text())
def test_no_text_leaves_its_element(text: str) -> None:
    for made in (line(text), code(text), preformatted(text), escape_line(text), difference(text)):
        seen = Parsed(made)
        assert seen.foreign == []
        assert HOSTILE_SIGNS.search(seen.text) is None


@given(VALUES)
def test_no_value_leaves_its_element(value: Any) -> None:
    for made in (json_value(value), json_fields(value)):
        seen = Parsed(made)
        assert seen.foreign == []
        assert HOSTILE_SIGNS.search(seen.text) is None


@given(st.text(alphabet="ab<>&\"'\n\t ", max_size=40))
def test_what_was_written_is_shown(text: str) -> None:
    shown = preformatted(text).removeprefix("<pre>").removesuffix("</pre>\n")
    # A browser drops the newline that comes first.
    shown = shown.removeprefix("\n")
    assert unescape(shown) == text


def test_long_lines_are_cut() -> None:
    assert line("x" * 1000) == f"<bdi>{'x' * 299}…</bdi>"


def test_a_difference_tells_its_lines_apart() -> None:
    assert difference("@@ -1 +1 @@\n-a<\n+b\n same") == (
        '<pre class="diff"><span class="hunk">@@ -1 +1 @@</span>\n'
        '<span class="removed">-a&lt;</span>\n<span class="added">+b</span>\n same</pre>\n'
    )
