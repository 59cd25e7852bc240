"""How text is shown to people: marks of statuses, colours of the 16-colour palette, times.

No colour says what no mark or word says.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal, NamedTuple, TypeGuard

import click

from uwf_git.cli.session import (
    Session,
    stdout_is_utf8,
    wants_colour,
    with_typed_store,
    write_stderr,
    write_stdout,
)
from uwf_git.model.limits import write_usd
from uwf_git.model.text import UNITS_S, one_line, render_time, visible_block, visible_line
from uwf_git.model.yaml_render import render_yaml

# Times as people tell them: how long ago, or the day and the hour where this machine is.

_MS = 1000
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_LATELY_S = 12 * _HOUR_S


def tell_when(time_ms: int, now_ms: int) -> str:
    """Return when *time_ms* was: ``24 min``, ``yesterday 14:25``, ``3 Nov 14:25``, ``2025-11-03``.

    Without a word for "ago", which a column's title says.
    """
    seconds = (now_ms - time_ms) // _MS
    # A commit's time is cut to seconds, and clocks differ a little.
    if -_MINUTE_S < seconds < _LATELY_S:
        return tell_seconds(max(seconds, 0))
    try:
        time, now = (datetime.fromtimestamp(each / _MS).astimezone() for each in (time_ms, now_ms))
    except (OverflowError, ValueError, OSError):
        return render_time(time_ms)
    if time.date() == now.date():
        return f"{time:%H:%M}"
    if time.date() == now.date() - timedelta(days=1):
        return f"yesterday {time:%H:%M}"
    if time.year == now.year and time < now:
        return f"{time.day} {time:%b %H:%M}"
    return f"{time:%Y-%m-%d}"


def tell_seconds(seconds: int) -> str:
    """Return a duration in its largest unit: ``43 s``, ``24 min``, ``3 h``, ``2 d``."""
    if seconds < _MINUTE_S:
        return f"{seconds} s"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min"
    return f"{seconds // _HOUR_S} h" if seconds < 2 * _DAY_S else f"{seconds // _DAY_S} d"


def tell_silence(last_output_ms: int | None, now_ms: int) -> str:
    """Return how long an agent has printed nothing; "" if that is not yet worth a word."""
    seconds = 0 if last_output_ms is None else (now_ms - last_output_ms) // _MS
    return f"silent for {tell_seconds(seconds)}" if seconds >= _MINUTE_S else ""


def tell_moment(time_ms: int, now_ms: int) -> str:
    """Return a time of this machine's zone; of a recent time also how long ago."""
    seconds = max((now_ms - time_ms) // _MS, 0)
    ago = f", {tell_seconds(seconds)} ago" if seconds < _LATELY_S else ""
    return tell_local(time_ms) + ago


def tell_local(time_ms: int, form: str = "%Y-%m-%d %H:%M:%S", *, zone: tzinfo | None = None) -> str:
    """Return a time of *zone*, or of this machine's: to the second, or in another *form*."""
    try:
        return datetime.fromtimestamp(time_ms / _MS, tz=UTC).astimezone(zone).strftime(form)
    except (OverflowError, ValueError, OSError):
        # Nodes may be later than the calendar goes.
        return render_time(time_ms)


# Times as people type them: `7d`, `2026-11-01`, `2026-11-01T12:00+02:00`.
#
# Without a zone a time is UTC, as in all output. A relative time counts from when the verb runs,
# not from when click parses it.

_AGO = re.compile(r"([0-9]{1,9})([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:$|[T ])")


class Moment(NamedTuple):
    """A time that was typed."""

    text: str
    ago_ms: int | None = None
    """How long before now; None for an absolute time."""

    time_ms: int = 0
    """Milliseconds since 1970, for an absolute time."""

    def at(self, now_ms: int) -> int:
        """Return milliseconds since 1970 (not before) if it is *now_ms*."""
        return max(self.time_ms if self.ago_ms is None else now_ms - self.ago_ms, 0)


class MomentWords(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a time; its value is a `Moment`."""

    name = "when"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Moment:
        """Parse the text."""
        moment = _parse(str(value).strip())
        if moment is None:
            self.fail(
                f"{str(value)[:40]!r} is no time: type how long ago (30m, 12h, 7d, 2w), a date "
                "(2026-11-01) or a time (2026-11-01T12:00, in UTC unless it says otherwise)",
                param,
                ctx,
            )
        return moment


MOMENT = MomentWords()


def _parse(text: str) -> Moment | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return Moment(text, ago_ms=int(ago[1]) * UNITS_S[ago[2]] * _MS)
    # Python takes other spellings as well, such as 20261101, which are ambiguous.
    if _DATE.match(text) is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return Moment(text, time_ms=int(zoned.timestamp() * _MS))


Style = Literal["bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan"]

# ECMA-48, "select graphic rendition"; a terminal's user chooses what the colours look like.
_CODES: Mapping[Style, int] = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35,
    "cyan": 36,
}  # fmt: skip

_MARKS: Mapping[str, tuple[str, str, Style | None]] = {
    "running": ("●", "*", "cyan"),
    "ready": ("○", "o", None),
    "waiting": ("?", "?", "yellow"),
    "paused": ("‖", "=", "blue"),
    "failed": ("✗", "!", "red"),
    "completed": ("✓", "+", "green"),
    "killed": ("×", "x", "magenta"),  # noqa: RUF001 (it is no letter)
    "split": ("⇉", ">", "cyan"),
    "again": ("↻", "~", "yellow"),
    "damaged": ("!", "#", "red"),
    "unreadable": ("!", "#", "red"),
}
_UNKNOWN: tuple[str, str, Style | None] = ("·", ".", None)


class Painted(str):
    """Text that is safe to print as it is: foreign text in it was made visible, then coloured."""

    __slots__ = ()


class Styled(NamedTuple):
    """A piece of text, and its colour."""

    text: str
    style: Style | None


class Screen(NamedTuple):
    """Where text is shown."""

    width: int | None = None
    """In columns; None: no terminal, nothing is cut."""

    has_colour: bool = False
    is_utf8: bool = True
    now_ms: int | None = None
    """Times are told by how long ago they were; None: as dates in UTC."""

    @property
    def ellipsis(self) -> str:
        """What stands at a cut."""
        return "…" if self.is_utf8 else "~"

    def spell(self, text: str) -> str:
        """Return *text* on one line, visible, in characters that the stream can write."""
        text = visible_line(text)
        return text if self.is_utf8 else text.encode("ascii", "backslashreplace").decode("ascii")

    def paint(self, text: str, style: Style | None) -> str:
        """Return *text*, which is visible already, in a colour."""
        if style is None or not self.has_colour or not text:
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"

    def mark(self, status: str) -> Styled:
        """Return the mark of a status."""
        sign, ascii_sign, style = _MARKS.get(status, _UNKNOWN)
        return Styled(sign if self.is_utf8 else ascii_sign, style)

    def name_status(self, status: str, more: str = "") -> Styled:
        """Return the mark of a status and its word, and *more* words."""
        mark = self.mark(status)
        return Styled(f"{mark.text} {status}{more}", mark.style)

    def tell_when(self, time_ms: int | None) -> str | None:
        """Return when something was."""
        if time_ms is None:
            return None
        return render_time(time_ms) if self.now_ms is None else tell_when(time_ms, self.now_ms)

    def tell_moment(self, time_ms: int) -> str:
        """Return when something was, to the second."""
        return render_time(time_ms) if self.now_ms is None else tell_moment(time_ms, self.now_ms)


def screen_of(session: Session) -> Screen:
    """Return the screen that standard output is."""
    return Screen(
        session.text_width(),
        session.output_format == "text"
        and wants_colour(session.environ, is_terminal=session.stdout_is_tty),
        stdout_is_utf8(),
        session.now_ms() if session.is_screen and not session.is_utc else None,
    )


# Print results: one document on standard output, in the session's format.


def emit(
    session: Session,
    document: Any,
    *,
    text: Callable[[Any], str] | None = None,
    none: str | None = None,
    wide: bool = False,
) -> None:
    """Print *document*, which must be JSON, in the session's format.

    *text* formats it for people instead of `render_text`, which cuts nothing if *wide*. Its result
    may hold text of agents as it is: controls are escaped here, unless it is `Painted`. *none* is
    what people are told if the document is empty, on standard error.
    """
    write_stdout(_render(session, document, text, wide=wide))
    if none is not None and not document and session.output_format == "text":
        note(none)


def without_none(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return *document* without those of *names* that are None; without names, of all."""
    optional = names or document
    return {
        name: each for name, each in document.items() if each is not None or name not in optional
    }


def emit_line(session: Session, row: dict[str, Any]) -> None:
    """Print *row* of a stream: as JSON on one line, else as a document of its own."""
    if session.output_format == "json":
        write_stdout(render_json(row, ascii_only=not stdout_is_utf8()))
    else:
        write_stdout("---\n")
        emit(session, row)


def confirm(question: str) -> bool:
    """Ask a person at the terminal; whatever is no yes is a no."""
    write_stderr(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask(question: str) -> str:
    """Return the line that a person types; Ctrl-C, or the end of the input: the person has left."""
    write_stderr(question)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip()


def note(message: str) -> None:
    """Write one line for a person to standard error; never fails."""
    write_stderr(one_line(with_typed_store(message)) + "\n")


def _render(
    session: Session, document: Any, text: Callable[[Any], str] | None, *, wide: bool
) -> str:
    if session.output_format == "json":
        return render_json(document, pretty=session.stdout_is_tty, ascii_only=not stdout_is_utf8())
    if session.output_format == "yaml":
        return render_yaml(document, ascii_only=not stdout_is_utf8())
    if text is not None:
        told = text(document)
        shown = told if isinstance(told, Painted) else visible_block(told)
        return shown if not shown or shown.endswith("\n") else shown + "\n"
    return render_text(document, width=None if wide else session.text_width())


# JSON as the command line prints it: valid in every locale, with controls escaped.

# JSON allows these unescaped, but no encoding takes a lone surrogate, terminals obey DEL, C1
# controls and marks of direction (https://trojansource.codes), and some readers end a line at
# U+2028. They occur only inside strings, where an escape is the same value.
_UNPRINTABLE = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def render_json(
    value: Any,
    *,
    pretty: bool = False,
    ascii_only: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Write *value* as one JSON text with a final newline; on one line unless *pretty*.

    *ascii_only* is for streams that are not UTF-8. *default* converts types that JSON lacks.
    """
    text = json.dumps(
        value,
        allow_nan=False,
        default=default,
        ensure_ascii=ascii_only,
        indent=2 if pretty else None,
        separators=None if pretty else (",", ":"),
    )
    if text.isascii() and "\x7f" not in text:
        return text + "\n"
    return re.sub(_UNPRINTABLE, _escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


# What agents have used: tokens, and US dollars.

_THOUSAND, _MILLION = 1000, 1_000_000


def describe_usage(usage: Mapping[str, Any], *, short: bool = False) -> list[str]:
    """Return the tokens and the cost, as far as agents reported them; *short* rounds."""
    write = _round if short else "{:,}".format
    tokens = {"in": usage.get("inputTokens"), "out": usage.get("outputTokens")}
    told = [
        f"{write(int(number))}{' tokens' if way == 'in' else ''} {way}"
        for way, number in tokens.items()
        if _is_number(number)
    ]
    parts = [", ".join(told)] if told else []
    cost = usage.get("costUsd")
    if _is_number(cost):
        parts.append(f"{write_usd(cost, 2 if short else 4)} USD")
    return parts


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _round(number: int) -> str:
    if number < _THOUSAND:
        return str(number)
    if number < _MILLION:
        return f"{number / _THOUSAND:.0f}k"
    return f"{number / _MILLION:.1f}M"


# Width of text on a terminal, in columns: the only use of wcwidth.


def display_width(text: str) -> int:
    """Count the columns that *text* takes; it must hold no control characters."""
    if text.isascii():
        return len(text)
    return _wide()[0](text)


def shorten(text: str, width: int | None, *, end: str = "…") -> str:
    """Cut *text* to at most *width* columns, between characters, with *end* at the cut.

    None cuts nothing.
    """
    if width is None or display_width(text) <= width:
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
    return _wide()[1](text)


def _wide() -> tuple[Callable[[str], int], Callable[[str], Iterator[str]]]:
    from wcwidth import iter_graphemes, width  # noqa: PLC0415 (start-up: most output is ASCII)

    return width, iter_graphemes


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
    counts = count_by_status(row["branches"]) if "branches" in row else ""
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


wide_option = click.option(
    "--wide", "--long", "wide", is_flag=True, help="As text: every column, and nothing cut."
)
"""Add the flag ``wide`` to a verb that prints a table."""


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
    shown = [
        column
        for column in columns
        if width is None or not column.rank or any(row[column.key].text for row in table)
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
    return styled._replace(text=screen.spell(styled.text))


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
