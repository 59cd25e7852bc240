"""Times and durations as people read them."""

import re
from datetime import UTC, datetime

_MS = 1000
_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
"""Units of time that people type after a number, in seconds."""

_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([smhdw]?)")


def parse_duration_ms(text: str) -> int | None:
    """Return the milliseconds that *text* spells (`90`, `2.5m`); None if it spells none."""
    match = _DURATION.fullmatch(text)
    return None if match is None else round(float(match[1]) * UNITS_S[match[2] or "s"] * _MS)


def render_time(time_ms: int) -> str:
    """Write milliseconds since 1970 as a date and a time, in UTC.

    Nodes may hold any natural number: one beyond the calendar is written as a number.
    """
    try:
        return datetime.fromtimestamp(time_ms / _MS, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms after 1970"


def render_duration(duration_ms: int) -> str:
    """Write milliseconds for people: `0.3 s`, `1 min 05 s`, `2 h 00 min`."""
    if duration_ms < _MINUTE_S * _MS:
        return f"{duration_ms / _MS:.1f} s"
    seconds = duration_ms // _MS
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min {seconds % _MINUTE_S:02} s"
    return f"{seconds // _HOUR_S} h {seconds % _HOUR_S // _MINUTE_S:02} min"
