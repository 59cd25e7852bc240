"""Foreign text in elements: escaped, spelled out, and never lost."""

import re
import time
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.allowed import Parsed, harmless
from web.stories import BUILT, MARKDOWN_ATTACK

from uwf_git.web import entries as markdown
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
        harmless(made)


@given(VALUES)
def test_no_value_leaves_its_element(value: Any) -> None:
    for made in (json_value(value), json_fields(value)):
        harmless(made)


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


# Markdown of agents: what it becomes, what it cannot do, and that nothing of it vanishes.


def render_markdown(text: str) -> str:
    return markdown.render_markdown(text, top=4)


MARKS = st.text(alphabet="ab<>&\"'`*_~#[]()!|:-+.1 \n\t\\/@\x1b\u202e", max_size=80)


def test_markdown_is_rendered() -> None:
    made = render_markdown(BUILT)
    assert "<h4>What was done</h4>" in made
    assert "<strong>in each filter</strong>" in made
    assert '<a href="https://www.rfc-editor.org/rfc/rfc4515" rel="noopener noreferrer' in made
    assert "<td>auth/ldap.py</td>" in made
    assert "<pre><code>def escape" in made
    assert "<ol>\n<li>The old filter is gone.</li>" in made


def test_an_attack_stays_text() -> None:
    seen = harmless(render_markdown(MARKDOWN_ATTACK))
    for shown in ("<script>alert(1)", "[run](javascript:alert(3))", "\\u202eentity <b>", "<iframe"):
        assert shown in seen.text
    assert "[a]: https://evil.example/defined" in seen.text


@given(st.text() | MARKS)
def test_no_text_leaves_its_place(text: str) -> None:
    harmless(render_markdown(text))


@given(MARKS)
def test_no_word_vanishes(text: str) -> None:
    made = render_markdown(text)
    assert made.count("a") >= sum(map(text.count, "a")) or "href" in made


@pytest.mark.parametrize(
    "text",
    [
        "> " * 25 + "deep",
        "[a]: https://example.com 'hidden'",
        "[a](relative) ![b](//evil.example)",
        "![x](data:image/png;base64,AAAA)",
    ],
)
def test_what_markdown_would_hide_is_shown(text: str) -> None:
    shown = Parsed(render_markdown(text)).text
    assert [word for word in ("deep", "hidden", "relative", "x") if word in text] == [
        word for word in ("deep", "hidden", "relative", "x") if word in shown
    ]


def test_columns_keep_their_lines() -> None:
    assert render_markdown("total 3\n  a   1\n") == "<pre>total 3\n  a   1\n</pre>\n"
    assert render_markdown('{"a": 1}') == '<pre>{"a": 1}</pre>\n'
    assert render_markdown("one\ntwo\n") == "<p>one<br />\ntwo</p>\n"


@pytest.mark.parametrize("text", ["x" * 65_537, "|a" * 2_001, "é" * 32_769])
def test_what_is_too_long_is_shown_as_it_is(text: str) -> None:
    assert render_markdown(text) == f"<pre>{text}</pre>\n"
    assert render_markdown(text[1:]).startswith("<p>")


@pytest.mark.parametrize("piece", ["[", "*a_b ", "`", "> ", "- ", "![a](", "<a ", "1. a\n", "\\"])
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()
    render_markdown((piece * 65_536)[:65_536])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "typed",
    [
        "sk-_ant_-01234567890123456789",
        "sk-[ant](https://example.com)-01234567890123456789",
        "&#115;k-**a**nt-01234567890123456789",
        "| a |\n|---|\n| sk-_ant_-01234567890123456789 |",
    ],
)
def test_key_is_not_shown_that_marks_hide_in_the_text(typed: str) -> None:
    shown = re.sub("<[^>]*>", "", render_markdown(f"Use {typed}\nnow."))

    assert "[masked]" in shown
    assert "6789" not in shown
