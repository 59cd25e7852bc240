"""Documents as text for people: tables, `key: value` lines, indentation.

None is `-`, true is `yes`; a table row is one line, and nothing in a value can move the cursor.
"""

import re
from collections.abc import Callable
from typing import Any

from uwf_git.cli.output.json_text import render_json
from uwf_git.cli.output.text_width import display_width, shorten
from uwf_git.model.visible import visible_block, visible_line

NOTHING = "-"

_GAP = "  "
_INDENT = "  "
# Ids of threads (26) and nodes (13) are copied from tables, so wider columns are cut first.
_NARROWEST = 13
# Deeper indentation is unreadable; hostile documents may be 500 levels deep.
_DEEPEST = 12
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render_text(document: Any, *, width: int | None = None) -> str:
    """Format *document*, which must be JSON, for people; "" for None or an empty list.

    *width* is the terminal's: table cells are shortened to fit. None shortens nothing.
    """
    if document is None or document in ([], {}):
        return ""
    return "".join(f"{line}\n" for line in _block(document, width, 0))


def render_table(
    rows: list[dict[str, Any]],
    *,
    width: int | None = None,
    cell: Callable[[Any], str] | None = None,
) -> list[str]:
    """Format *rows* as the lines of an aligned table; a key that a row lacks is `-`.

    *cell* formats a value instead of the default.
    """
    show = cell or _cell
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = [[_header(key) for key in keys]]
    table += [[visible_line(show(row.get(key))) for key in keys] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    if width is not None:
        widths = _fitted(widths, width)
    return [_row(cells, widths) for cells in table]


def _block(value: Any, width: int | None, depth: int) -> list[str]:
    if _is_inline(value):
        return [_inline(value)]
    if isinstance(value, str):
        return visible_block(value).removesuffix("\n").split("\n")
    if depth >= _DEEPEST:
        return [_compact(value)]
    inner = None if width is None else max(width - len(_INDENT), 1)
    if isinstance(value, dict):
        return _fields(value, inner, depth + 1)
    if all(isinstance(item, dict) and item for item in value):
        return render_table(value, width=width)
    return _items(value, inner, depth + 1)


def _fields(fields: dict[str, Any], width: int | None, depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in fields.items():
        name = visible_line(key)
        if _is_inline(value):
            lines.append(f"{name}: {_inline(value)}".rstrip())
        else:
            lines.append(f"{name}:")
            lines += [f"{_INDENT}{line}".rstrip() for line in _block(value, width, depth)]
    return lines


def _items(items: list[Any], width: int | None, depth: int) -> list[str]:
    if all(_is_inline(item) for item in items):
        return [_inline(item) for item in items]
    lines: list[str] = []
    for item in items:
        first, *others = _block(item, width, depth)
        lines.append(f"- {first}".rstrip())
        lines += [f"{_INDENT}{line}".rstrip() for line in others]
    return lines


def _is_inline(value: Any) -> bool:
    if isinstance(value, str):
        return "\n" not in value
    return not isinstance(value, dict | list | tuple) or not value


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return visible_line(value)
    if value is None or isinstance(value, dict | list | tuple):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_inline(value):
        return _inline(value)
    if not isinstance(value, dict) and all(_is_inline(item) for item in value):
        return ", ".join(_inline(item) for item in value)
    return _compact(value)


def _compact(value: Any) -> str:
    return visible_line(render_json(value).removesuffix("\n"))


def _header(key: str) -> str:
    return _HUMP.sub(" ", visible_line(key)).upper()


def _row(cells: list[str], widths: list[int]) -> str:
    padded = [
        text + " " * (width - display_width(text))
        for text, width in zip(map(shorten, cells, widths), widths, strict=True)
    ]
    return _GAP.join(padded).rstrip()


def _fitted(widths: list[int], width: int) -> list[int]:
    """Narrow the widest columns until the table fits, none below the width of an id."""
    fitted = [min(each, max(width, _NARROWEST)) for each in widths]
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - width
    while excess > 0 and max(fitted) > _NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted
