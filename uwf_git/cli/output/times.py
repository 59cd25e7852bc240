"""Times as people type and tell them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import click

from uwf_git.model.text import UNITS_S, render_time

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
        if isinstance(value, Moment):
            return value
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
