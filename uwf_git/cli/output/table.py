"""Tables that fit: low columns are left out before words are cut, and ids are never cut.

A row is one line, and nothing in a cell can move the cursor.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from uwf_git.cli.output.screen import Screen, Styled
from uwf_git.cli.output.text_width import display_width, shorten
from uwf_git.model.text import visible_line

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


def _fit(
    columns: list[Column], widths: dict[str, int], width: int
) -> tuple[list[Column], dict[str, int]]:
    """Return the columns that have room, and their widths."""
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
