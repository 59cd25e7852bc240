"""The limits of a thread: a row each, which the files, options, library and documents read.

A limit is compared with what was recorded, so every machine decides alike, and only before a step:
a running step is not cut short by tokens or cost, and turns that run at once may each use the
time that is left.
"""

import math
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from uwf_git.model.text import render_duration

if TYPE_CHECKING:
    from uwf_git.model.thread import ThreadState

MOST = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

LONGEST_MS = 365 * 24 * 3600 * 1000
"""Longer waits overflow system calls."""

_MS = 1000
_CENT = 0.01

_LEAST_USD = 0.000001
"""What six decimals can show."""

_SLACK = 1 + 1e-9
"""Ten times 0.1 USD is 0.9999999999999999 USD."""

FIT = {
    "count": "a whole number, 1 or more",
    "ms": "a whole number of milliseconds, 1 or more, at most a year",
    "usd": "a number of US dollars, 0.000001 or more",
}
"""What a limit must be, by its unit."""


class Limit(NamedTuple):
    unit: Literal["count", "ms", "usd"]
    option: str
    metavar: str
    about: str

    reached: str
    """That it is used up, in words; times in seconds."""

    find_used: Callable[["ThreadState"], float]
    also: tuple[str, ...] = ()


def count_tokens(usage: Mapping[str, Any]) -> int:
    """Return how many tokens went in and out, as far as agents reported them."""
    count = _number(usage.get("inputTokens")) + _number(usage.get("outputTokens"))
    return int(max(-sys.float_info.max, min(count, sys.float_info.max)))


def find_cost(usage: Mapping[str, Any]) -> float | None:
    """Return the cost in US dollars; None if no agent reported one."""
    cost = usage.get("costUsd")
    return None if isinstance(cost, bool) or not isinstance(cost, int | float) else cost


def write_usd(cost: float, digits: int = 4) -> str:
    """Return a cost with so many decimals; below a cent with two significant digits."""
    if 0 < cost < _CENT:
        digits = 1 - math.floor(math.log10(cost))
    return f"{cost:.{digits}f}"


def _number(value: Any) -> float:
    # Agents may report anything under any name.
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


LIMITS = {
    "maxSteps": Limit(
        "count",
        "--max-steps",
        "N",
        "The most steps of the thread, in all runs together.",
        "{used} of {limit} steps are taken",
        lambda present: present.depth,
        # Seed 003 calls steps rounds.
        ("--max-rounds",),
    ),
    "maxExecutionTime": Limit(
        "ms",
        "--max-execution-time",
        "SECONDS",
        "The longest time of its agents, all steps together; also 30m, 2h, 1d. Turns that run at "
        "once may each use what is left.",
        "{used:.1f} s of {limit:.1f} s of execution time are used",
        lambda present: present.execution_ms,
    ),
    "maxTokens": Limit(
        "count",
        "--max-tokens",
        "N",
        "No step begins after its agents have reported this many tokens, in and out.",
        "{used} of {limit} tokens are used",
        lambda present: count_tokens(present.usage),
    ),
    "maxCost": Limit(
        "usd",
        "--max-cost",
        "USD",
        "No step begins after its agents have reported this cost.",
        "${used} of ${limit} are spent",
        lambda present: find_cost(present.usage) or 0,
    ),
}
"""By their names in a StartNode (seed 004 has the execution time)."""


def find_limit_problem(name: str, value: Any, *, is_recorded: bool = False) -> str | None:
    if name not in LIMITS:
        return "is no limit"
    unit = LIMITS[name].unit
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Older versions of uwf took any amount above 0.
    least = 1 if unit != "usd" else math.ulp(0) if is_recorded else _LEAST_USD
    # False for NaN, which compares false with everything.
    fits = is_number and least <= value <= (LONGEST_MS if unit == "ms" else MOST)
    if fits and (unit == "usd" or int(value) == value):
        return None
    return f"must be {FIT[unit]}"


def render_limit(name: str, value: float | None, digits: int = 6) -> str:
    """Return a value of the limit *name* as it is recorded; times are in milliseconds."""
    if value is None:
        return "no limit"
    return render_duration(int(value)) if LIMITS[name].unit == "ms" else str(round(value, digits))


def tell_limit(name: str, value: float | None) -> str:
    """Return a value of the limit *name* for people: small amounts as ``write_usd``."""
    if value is None or LIMITS[name].unit != "usd" or not 0 < value < _CENT:
        return render_limit(name, value)
    return write_usd(value)


class Spent(NamedTuple):
    name: str
    limit: float
    used: float
    told: str


def find_spent(present: "ThreadState") -> Spent | None:
    """Return the first limit that leaves no room for another step; None if there is room."""
    for name, used in list_used(present).items():
        limit, unit = present.limits[name], LIMITS[name].unit
        if (used * _SLACK if unit == "usd" else used) >= limit:
            write: Any = {"ms": lambda ms: ms / _MS, "usd": write_usd}.get(unit, int)
            told = LIMITS[name].reached.format(used=write(used), limit=write(limit))
            return Spent(name, limit, used, told)
    return None


def list_used(present: "ThreadState") -> dict[str, float]:
    return {
        name: limit.find_used(present)
        for name, limit in LIMITS.items()
        if present.limits.get(name) is not None
    }


def find_time_left_s(present: "ThreadState", *, spent_ms: int = 0) -> float | None:
    """Return how many seconds of execution time are left; None if there is no limit.

    *spent_ms* are gone already, and not recorded yet.
    """
    limit = present.limits.get("maxExecutionTime")
    # A thread from elsewhere may have any limit.
    if limit is None:
        return None
    left_ms: int = min(limit - present.execution_ms - spent_ms, LONGEST_MS)
    return max(0.0, left_ms / _MS)
