"""How text is shown to people: marks of statuses, colours of the 16-colour palette, times.

No colour says what no mark or word says.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
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
from uwf_git.model.text import UNITS_S, one_line, render_time, visible_block

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


def tell_local(time_ms: int) -> str:
    """Return a time of this machine's zone, to the second."""
    try:
        return f"{datetime.fromtimestamp(time_ms / _MS).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return render_time(time_ms)


# Times as people type them: `7d`, `2026-11-01`, `2026-11-01T12:00+02:00`.
#
# Without a zone a time is UTC, as in all output. A relative time counts from when the verb runs,
# not from when click parses it.

_AGO = re.compile(r"([0-9]{1,9})([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:$|[T ])")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    return Moment(text, time_ms=int((zoned - _EPOCH).total_seconds() * _MS))


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
    is_screen = session.is_screen
    return Screen(
        session.text_width(),
        session.output_format == "text"
        and wants_colour(session.environ, is_terminal=session.stdout_is_tty),
        stdout_is_utf8(),
        session.now_ms() if is_screen and not session.is_utc else None,
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


def note(message: str) -> None:
    """Write one line for a person to standard error; never fails."""
    write_stderr(one_line(with_typed_store(message)) + "\n")


def _render(
    session: Session, document: Any, text: Callable[[Any], str] | None, *, wide: bool
) -> str:
    # Each format's module is imported only where that format is requested.
    if session.output_format == "json":
        return render_json(document, pretty=session.stdout_is_tty, ascii_only=not stdout_is_utf8())
    if session.output_format == "yaml":
        from uwf_git.model.yaml.render import render_yaml  # noqa: PLC0415 (see above)

        return render_yaml(document)
    if text is not None:
        told = text(document)
        shown = told if isinstance(told, Painted) else visible_block(told)
        return shown if not shown or shown.endswith("\n") else shown + "\n"
    from uwf_git.cli.output.table import render_text  # noqa: PLC0415 (see above)

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
        parts.append(f"{cost:.2f} USD" if short else f"{cost:.4f} USD")
    return parts


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _round(number: int) -> str:
    if number < _THOUSAND:
        return str(number)
    if number < _MILLION:
        return f"{number / _THOUSAND:.0f}k"
    return f"{number / _MILLION:.1f}M"
