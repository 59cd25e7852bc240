"""Times as people tell them: how long ago, or the day and the hour where this machine is."""

from datetime import datetime, timedelta

from uwf_git.model.text import render_time

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


def tell_moment(time_ms: int, now_ms: int) -> str:
    """Return a time of this machine's zone; of one that is not long ago also how long."""
    seconds = max((now_ms - time_ms) // _MS, 0)
    ago = f", {tell_seconds(seconds)} ago" if seconds < _LATELY_S else ""
    return tell_local(time_ms) + ago


def tell_local(time_ms: int) -> str:
    """Return a time of this machine's zone, to the second."""
    try:
        return f"{datetime.fromtimestamp(time_ms / _MS).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return render_time(time_ms)
