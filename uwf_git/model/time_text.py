"""Times as people read them.

Owns: the one spelling of a moment in what commands print. Knows nothing of: clocks.
"""

from datetime import UTC, datetime

_MS = 1000


def render_time(time_ms: int) -> str:
    """Write milliseconds since 1970 as a date and a time, in UTC.

    Nodes may hold any natural number: one that no calendar has is written as the number it is.
    """
    try:
        return datetime.fromtimestamp(time_ms / _MS, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms after 1970"
