"""Limits of a thread: what each of them may be.

Owns: which values a limit takes, and how one is written for people.
Knows nothing of: what it counts (engine/limits.py), who sets it.
Always true: a limit leaves room for something: none is 0, for with that no step could ever begin.
"""

from typing import Any

from uwf_git.model.time_text import render_duration

MOST = 2**53 - 1
"""The largest whole number that every reader of JSON keeps."""

LONGEST_MS = 365 * 24 * 3600 * 1000
"""Longer ones overflow the system calls that wait."""


def find_limit_problem(name: str, value: Any) -> str | None:
    """Tell what keeps *value* from being the limit *name*; None if nothing does."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A NaN is neither above nor below anything.
    is_positive = is_number and 0 < value <= MOST
    is_whole = is_positive and int(value) == value
    if name == "maxCost":
        return None if is_positive else "must be a number of US dollars above 0"
    if name == "maxExecutionTime":
        fits = is_whole and value <= LONGEST_MS
        return None if fits else "must be a whole number of milliseconds, 1 or more, at most a year"
    return None if is_whole else "must be a whole number, 1 or more"


def render_limit(name: str, value: float | None) -> str:
    """Write what the limit *name* is, or what of it is used; a time is kept in milliseconds."""
    if value is None:
        return "no limit"
    return render_duration(int(value)) if name == "maxExecutionTime" else str(value)
