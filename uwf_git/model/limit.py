"""Limits of a thread: valid values, and how they are shown. Each is above 0."""

from typing import Any

from uwf_git.model.time_text import render_duration

MOST = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

LONGEST_MS = 365 * 24 * 3600 * 1000
"""Longer waits overflow system calls."""


def find_limit_problem(name: str, value: Any) -> str | None:
    """Return what is wrong with *value* as the limit *name*; None if it is valid."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # False for NaN, which compares false with everything.
    is_positive = is_number and 0 < value <= MOST
    is_whole = is_positive and int(value) == value
    if name == "maxCost":
        return None if is_positive else "must be a number of US dollars above 0"
    if name == "maxExecutionTime":
        fits = is_whole and value <= LONGEST_MS
        return None if fits else "must be a whole number of milliseconds, 1 or more, at most a year"
    return None if is_whole else "must be a whole number, 1 or more"


def render_limit(name: str, value: float | None) -> str:
    """Return a value of the limit *name* as text; times are in milliseconds."""
    if value is None:
        return "no limit"
    return render_duration(int(value)) if name == "maxExecutionTime" else str(value)
