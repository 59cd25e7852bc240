"""Markdown of agents as HTML, safely: no HTML of theirs, no image, no address but a web link.

All that they wrote is to be seen: link definitions, which Markdown hides, are shown as text, and
what is too long, or nested deeper than the parser goes, as it was typed. Only keys are not: what is
shown is searched for them once more, since an entity or a mark can hide one in what is typed.
Source: CommonMark 0.31; tables and strikethrough as on GitHub.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from uwf_git.engine.masking import mask_keys
from uwf_git.model.text import visible_block
from uwf_git.web.elements import WIDE, preformatted

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LONGEST_BYTES = 64 * 1024
# A table of 160 KB took four seconds.
_MOST_CELLS = 2000
_DEEPEST = 20
_LOWEST_HEADING = 6
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_KEPT = {"a": ("href",), "ol": ("start",)}
"""The attributes that an element keeps."""

_MARK = re.compile(
    r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|```|~~~|\|)|\*\*|\]\(|`[^`\n]+`", re.MULTILINE
)
_ALIGNED = re.compile(r"^(?:[ \t]+\S|[{\[<])|\S(?:\t| {2,})\S", re.MULTILINE)


def render_markdown(text: str, *, top: int) -> str:
    """Return *text* as HTML, its headings from level *top* on; columns without marks keep lines."""
    is_long = len(text.encode(errors="replace")) > _LONGEST_BYTES or text.count("|") > _MOST_CELLS
    if is_long or (_ALIGNED.search(text) and not _MARK.search(text)):
        return preformatted(text)
    parser = _make_parser()
    tokens = parser.parse(visible_block(text))
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return preformatted(text)
    _lower_headings(tokens, top)
    _clean(tokens)
    made: str = parser.renderer.render(tokens, parser.options, {})
    return made


@cache
def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 (50 ms; for reports and pages only)

    options = {"html": False, "breaks": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable(["image", "reference"])
    # One that is too wide is scrolled by itself.
    parser.add_render_rule("table_open", lambda *_args: f"{WIDE.format('Table')}<table>\n")
    parser.add_render_rule("table_close", lambda *_args: "</table></div>\n")
    parser.add_render_rule("fence", _render_fence)
    # Source: "Security" in the documentation of markdown-it.
    setattr(parser, "validateLink", _is_link)  # noqa: B010 (for types it is a method)
    return parser


def _render_fence(_renderer: object, tokens: "Sequence[Token]", at: int, *_args: object) -> str:
    """Return a block of code, below what stands behind the fence: mostly its language."""
    info = tokens[at].info.strip()
    label = f"<p><code>{escape(info, quote=False)}</code></p>\n" if info else ""
    return f"{label}<pre><code>{escape(tokens[at].content, quote=False)}</code></pre>\n"


def _is_link(address: str) -> bool:
    return _LINK.match(address.strip()) is not None


def _lower_headings(tokens: "Sequence[Token]", top: int) -> None:
    headings = [token for token in tokens if token.type in {"heading_open", "heading_close"}]
    ranks = sorted({token.tag for token in headings})
    for token in headings:
        token.tag = f"h{min(top + ranks.index(token.tag), _LOWEST_HEADING)}"


def _clean(tokens: "Sequence[Token]") -> None:
    """Spell out what entities stood for, and drop attributes."""
    for token in tokens:
        token.content = visible_block(token.content)
        # How a column is aligned would be a style.
        token.info = visible_block(token.info)
        attributes: dict[str, Any] = token.attrs
        token.attrs = {
            name: attributes[name] for name in _KEPT.get(token.tag, ()) if name in attributes
        }
        if token.type == "link_open":
            token.attrs["rel"] = "noopener noreferrer nofollow"
        if token.children:
            _clean(token.children)
            token.children = _mask_shown(token.children)


def _mask_shown(children: "list[Token]") -> "list[Token]":
    """Return a paragraph without its marks if a key is seen only where they are gone."""
    from markdown_it.token import Token  # noqa: PLC0415 (as above)

    shown = "".join("\n" if each.type.endswith("break") else each.content for each in children)
    masked = mask_keys(shown)
    return children if masked == shown else [Token("text", "", 0, content=masked)]
