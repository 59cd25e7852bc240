"""Elements of HTML that hold foreign text: escaped, with controls and direction marks spelled."""

import json
import re
from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from typing import Any

from uwf_git.model.text import one_line, visible_block, visible_line

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
WIDE = '<div class="wide" role="group" aria-label="{}" tabindex="0">'
"""What scrolls by itself, with a name for who cannot see it."""

_LONGEST_LINE = 300
_MOST_ITEMS = 100


def escape(text: str) -> str:
    """Return *text* for the inside of an element; it has no place in an attribute."""
    return text.translate(_ESCAPED)


def line(text: str, *, most: int = _LONGEST_LINE) -> str:
    """Return *text* on one line, cut if it is long, apart from the direction of what is around."""
    shown = one_line(text)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return f"<bdi>{escape(shown)}</bdi>"


def escape_line(text: str) -> str:
    return escape(one_line(text))


def code(text: str) -> str:
    return f"<code>{escape(visible_line(text))}</code>"


def preformatted(text: str) -> str:
    return f"<pre>{_first_line_kept(escape(visible_block(text)))}</pre>\n"


def _first_line_kept(escaped: str) -> str:
    # HTML drops a newline that follows <pre>.
    return f"\n{escaped}" if escaped.startswith("\n") else escaped


def difference(diff: str) -> str:
    """Return the hunks of a unified diff; a mark and a colour tell the lines apart."""
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    parts: list[str] = []
    for kind, group in groupby(diff.split("\n"), lambda each: kinds.get(each[:1], "")):
        lines = escape(visible_block("\n".join(group)))
        parts.append(f'<span class="{kind}">{lines}</span>' if kind else lines)
    return f'<pre class="diff">{_first_line_kept(chr(10).join(parts))}</pre>\n'


def fields(values: Mapping[str, str]) -> str:
    """Return a list of names (text) and values (HTML); those without a value are left out."""
    rows = "".join(
        f"<dt>{line(name)}</dt><dd>{each}</dd>\n" for name, each in values.items() if each
    )
    return f"<dl>\n{rows}</dl>\n" if rows else ""


def table(
    name: str, heads: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: Container[int] = ()
) -> str:
    """Return a table of HTML cells that scrolls by itself; columns *numbers* are set right."""
    told = "".join(
        f'<th scope="col"{_side(n, numbers)}>{each}</th>' for n, each in enumerate(heads)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{_side(n, numbers)}>{cell}</td>' for n, cell in enumerate(row))}</tr>\n"
        for row in rows
    )
    return (
        f"{WIDE.format(name)}<table>\n<thead><tr>{told}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _side(column: int, numbers: Container[int]) -> str:
    return ' class="number"' if column in numbers else ""


def folded(summary: str, inside: str, *, kind: str = "") -> str:
    """Return *inside* folded below *summary*; both are HTML."""
    named = f' class="{kind}"' if kind else ""
    return f"<details{named}><summary>{summary}</summary>\n{inside}</details>\n"


def json_value(value: Any) -> str:
    if isinstance(value, str):
        return line(value) if _is_short(value) else f'<div class="text">{_block(value)}</div>'
    if isinstance(value, dict) and value and all(_is_scalar(each) for each in value.values()):
        return fields({name: json_value(each) for name, each in value.items()})
    if isinstance(value, list) and value and all(_is_scalar(each) for each in value):
        items = "".join(f"<li>{json_value(each)}</li>\n" for each in value[:_MOST_ITEMS])
        more = len(value) - _MOST_ITEMS
        return f"<ul>\n{items}{f'<li>… and {more} more</li>' if more > 0 else ''}</ul>\n"
    if _is_scalar(value):
        return code(_json(value))
    return preformatted(_json(value, indent=2))


def json_fields(value: Any) -> str:
    if isinstance(value, dict) and value:
        return fields({name: json_value(each) for name, each in value.items()})
    return "" if value == {} else json_value(value)


def _block(text: str) -> str:
    return escape(visible_block(text))


def _json(value: Any, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        # With an indent json is written in Python, which does not go as deep.
        return json.dumps(value, ensure_ascii=False)


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST_LINE and re.search(r"[\r\n]", text) is None


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value
