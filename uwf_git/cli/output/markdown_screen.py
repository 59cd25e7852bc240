"""Markdown as lines for a terminal: the only use of rich, and of its parser.

Promise: foreign Markdown cannot move the cursor, and no word of it is lost. HTML, pictures and
struck text are shown as they are written, code is not highlighted (a lexer of a foreign name would
run over foreign text), and links are text with their address.
"""

from collections.abc import Iterator
from io import StringIO
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Heading, Markdown, TableElement, TextElement
from rich.padding import Padding
from rich.text import Text
from rich.theme import Theme

from uwf_git.cli.output.screen import Screen
from uwf_git.model.text import visible_block, visible_line

# Longer lines are hard to read; git and man do the same.
_WIDEST = 100
_THEME = Theme(
    {
        **dict.fromkeys(("markdown.code", "markdown.code_block", "markdown.item.bullet"), "cyan"),
        **{f"markdown.h{level}": "bold" for level in range(1, 7)},
        "markdown.h2": "bold cyan",
        "markdown.block_quote": "none",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


def render_markdown(text: str, screen: Screen) -> str:
    """Return *text* as lines that fit the screen, coloured if it has colours."""
    console = Console(
        file=StringIO(),
        width=min(screen.width or _WIDEST, _WIDEST),
        force_terminal=screen.has_colour,
        color_system="standard" if screen.has_colour else None,
        no_color=not screen.has_colour,
        theme=_THEME,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        console.print(_SafeMarkdown(text))
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


class _LeftHeading(Heading):
    """A heading at the margin; rich centres them."""

    def __rich_console__(self, *_given: object) -> "list[Text]":
        text = self.text.copy()
        text.justify = "left"
        return [text]


class _PlainCode(TextElement):
    style_name = "markdown.code_block"

    def __rich_console__(self, *_given: object) -> "list[Padding]":
        return [
            Padding(Text(str(self.text).rstrip("\n"), style="markdown.code_block"), (0, 0, 0, 2))
        ]


class _WholeTable(TableElement):
    """A table whose cells wrap; rich cuts what has no blanks."""

    def __rich_console__(self, *given: Any) -> "Iterator[Any]":
        tables: Any = super().__rich_console__(*given)
        for table in tables:
            for column in table.columns:
                column.overflow = "fold"
            yield table


class _SafeMarkdown(Markdown):
    elements = {  # noqa: RUF012 (as rich has it)
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
        "table_open": _WholeTable,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        self.parsed = parser.parse(markup)
        for token in self.parsed:
            _make_visible(token)


def _make_visible(token: Token) -> None:
    """Spell out controls: an entity such as ``&#27;`` becomes one only when it is parsed."""
    show = visible_block if token.type in {"fence", "code_block"} else visible_line
    token.content = show(token.content)
    token.info = visible_line(token.info)
    token.attrs = {
        name: visible_line(value) if isinstance(value, str) else value
        for name, value in token.attrs.items()
    }
    for child in token.children or ():
        _make_visible(child)
    if token.type == "image":
        # rich would print it at once, before its line.
        token.type, token.content = "text", f"![{token.content}]({token.attrs['src']})"
