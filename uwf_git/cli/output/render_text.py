"""Documents as text for people: tables, `key: value` lines, indentation.

None is `-`, true is `yes`; a table row is one line, and nothing in a value can move the cursor.
"""

import re
from collections.abc import Callable
from typing import Any

from uwf_git.cli.output.json_text import render_json
from uwf_git.cli.output.screen import Screen
from uwf_git.cli.output.table import NOTHING, Column, render_columns
from uwf_git.cli.session.streams import stdout_is_utf8
from uwf_git.model.text import visible_block, visible_line

_INDENT = "  "
# What people copy from tables: ids of threads, nodes and commits.
_ID = re.compile("-|[0-9A-Z]{13}|[0-9A-Z]{26}|[0-9a-f]{40}")
_NARROWEST = 10
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
    cells = [{key: show(row.get(key)) for key in keys} for row in rows]
    columns = [_column(key, rank, [row[key] for row in cells]) for rank, key in enumerate(keys)]
    screen = Screen(width, is_utf8=width is None or stdout_is_utf8())
    return render_columns(cells, columns, screen)


def _column(key: str, rank: int, cells: list[str]) -> Column:
    """Return the column of a key of any document: the first ones count most, ids are not cut."""
    title = _HUMP.sub(" ", visible_line(key)).upper()
    is_id = all(_ID.fullmatch(cell) for cell in cells)
    return Column(key, title, rank, None if is_id else min(len(title), _NARROWEST))


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
