"""Tables that fit the terminal, and documents as text for people."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from uwf_git.cli.output.screen import Painted, Screen, Styled, render_json
from uwf_git.cli.session import stdout_is_utf8
from uwf_git.model.text import visible_block, visible_line

# Width of text on a terminal, in columns: the only use of wcwidth.

_ELLIPSIS = "…"


def display_width(text: str) -> int:
    """Count the columns that *text* takes; it must hold no control characters."""
    if text.isascii():
        return len(text)
    from wcwidth import width  # noqa: PLC0415 (start-up: most output is ASCII)

    return width(text)


def shorten(text: str, width: int, *, end: str = _ELLIPSIS) -> str:
    """Cut *text* to at most *width* columns, between characters, with *end* at the cut."""
    if display_width(text) <= width:
        return text
    room = width - 1
    shown: list[str] = []
    for character in _characters(text):
        room -= display_width(character)
        if room < 0:
            break
        shown.append(character)
    return "".join(shown) + end


def _characters(text: str) -> Iterator[str]:
    """Return the characters as people count them: with combining marks, a joined emoji as one."""
    if text.isascii():
        return iter(text)
    from wcwidth import iter_graphemes  # noqa: PLC0415 (start-up: most output is ASCII)

    return iter_graphemes(text)


# Counts of rows, events and lines, as in `--limit`; a number that is too large means all.

_MOST = 2**48
"""More than a disk holds, and the sum of two is still a size to Python."""


class Count(click.IntRange):
    """The type of an option that takes a count, *least* or more."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(min=least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number."""
        return min(super().convert(value, param, ctx), _MOST)


def limit_option(
    words: str = "The most rows to print.", *, default: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``limit: int`` to a verb; without *default* it may be None."""
    return click.option(
        "--limit",
        type=Count(),
        metavar="N",
        default=default,
        show_default=default is not None,
        help=words,
    )


def describe_split(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the status of a row of a list in a word, and how many branches have which."""
    counts = f"{count_by_status(row['branches'])}" if "branches" in row else ""
    if "branchStatus" in row:
        return row["branchStatus"], f" (split: {counts})"
    return row["status"], f" ({counts})" if counts else ""


def count_by_status(counts: dict[str, int]) -> str:
    """Return the numbers of branches in words: ``2 running, 1 failed``."""
    return ", ".join(f"{number} {status}" for status, number in counts.items())


# Tables that fit: low columns are left out before words are cut, and ids are never cut.
#
# A row is one line, and nothing in a cell can move the cursor.

NOTHING = "-"
_GAP = "  "

Cell = str | Styled | None


class Column(NamedTuple):
    """A column of a table."""

    key: str
    title: str
    rank: int = 0
    """The columns of the highest rank are left out first; 0: none is left out."""

    least: int | None = None
    """Cells may be cut to this width; None: they are never cut."""


def wide_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flag ``wide`` to a verb that prints a table."""
    return click.option(
        "--wide", "--long", "wide", is_flag=True, help="As text: every column, and nothing cut."
    )(function)


def render_columns(
    rows: Sequence[Mapping[str, Cell]],
    columns: Sequence[Column],
    screen: Screen,
    *,
    wide: bool = False,
) -> list[str]:
    """Format *rows* as the lines of an aligned table; an empty cell is `-`.

    At a terminal, columns without any value are left out, and those that have no room; not if
    *wide*, nor outside of a terminal.
    """
    width = None if wide else screen.width
    table = [{column.key: _cell(row.get(column.key), screen) for column in columns} for row in rows]
    shown = list(columns)
    if width is not None:
        shown = [
            column
            for column in columns
            if not column.rank or any(row[column.key].text for row in table)
        ]
    widths = {
        column.key: max(
            display_width(column.title),
            *(display_width(row[column.key].text or NOTHING) for row in table),
        )
        for column in shown
    }
    if width is not None:
        shown, widths = _fit(shown, widths, width)
    head = {column.key: Styled(column.title, "bold") for column in shown}
    return [_line(row, shown, widths, screen) for row in [head, *table]]


def paint_columns(
    rows: Sequence[Mapping[str, Cell]],
    columns: Sequence[Column],
    screen: Screen,
    *,
    wide: bool = False,
) -> Painted:
    """Format *rows* as the text of such a table; "" without rows."""
    return Painted("\n".join(render_columns(rows, columns, screen, wide=wide) if rows else ()))


def _fit(
    columns: list[Column], widths: dict[str, int], width: int
) -> tuple[list[Column], dict[str, int]]:
    shown = columns
    while _least(shown, widths) > width and any(column.rank for column in shown):
        last = max(shown, key=lambda column: column.rank)
        shown = [column for column in shown if column is not last]
    fitted = {column.key: widths[column.key] for column in shown}
    excess = sum(fitted.values()) + len(_GAP) * (len(shown) - 1) - width
    while excess > 0:
        spare = {
            column.key: fitted[column.key]
            for column in shown
            if column.least is not None and fitted[column.key] > column.least
        }
        if not spare:
            break
        fitted[max(spare, key=spare.__getitem__)] -= 1
        excess -= 1
    return shown, fitted


def _least(columns: list[Column], widths: dict[str, int]) -> int:
    """Return the width below which *columns* do not fit."""
    cells = (
        widths[column.key] if column.least is None else min(column.least, widths[column.key])
        for column in columns
    )
    return sum(cells) + len(_GAP) * (len(columns) - 1)


def _cell(cell: Cell, screen: Screen) -> Styled:
    styled = cell if isinstance(cell, Styled) else Styled(cell or "", None)
    text = visible_line(styled.text)
    if not screen.is_utf8:
        # As the stream would write it, which takes more columns.
        text = text.encode("ascii", "backslashreplace").decode("ascii")
    return styled._replace(text=text)


def _line(
    row: Mapping[str, Styled], columns: Sequence[Column], widths: Mapping[str, int], screen: Screen
) -> str:
    line = ""
    for number, column in enumerate(columns):
        cell = row[column.key]
        text = shorten(cell.text or NOTHING, widths[column.key], end=screen.ellipsis)
        is_last = number == len(columns) - 1
        padding = "" if is_last else " " * (widths[column.key] - display_width(text)) + _GAP
        line += screen.paint(text, cell.style) + padding
    return line


# Documents as text for people: tables, `key: value` lines, indentation.
#
# None is `-`, true is `yes`; a table row is one line, and nothing in a value can move the cursor.

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


def render_table(rows: list[dict[str, Any]], *, width: int | None = None) -> list[str]:
    """Format *rows* as the lines of an aligned table; a key that a row lacks is `-`."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [{key: _show_value(row.get(key)) for key in keys} for row in rows]
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


def _show_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_inline(value):
        return _inline(value)
    if not isinstance(value, dict) and all(_is_inline(item) for item in value):
        return ", ".join(_inline(item) for item in value)
    return _compact(value)


def _compact(value: Any) -> str:
    return visible_line(render_json(value).removesuffix("\n"))
