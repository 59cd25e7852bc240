"""Limits: how much a thread may still do.

A limit is compared with what was recorded, so every machine decides alike, and only before a step:
a running step is not cut short by tokens or cost.
"""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.limit import LONGEST_MS
from uwf_git.model.thread import ThreadState

_MS = 1000


class Spent(NamedTuple):
    """A limit that a thread has reached."""

    name: str
    """``maxSteps``, ``maxExecutionTime``, ``maxTokens`` or ``maxCost``."""

    limit: float
    used: float
    told: str
    """The same in words."""


def find_spent(present: ThreadState) -> Spent | None:
    """Return the first limit that leaves no room for another step; None if there is room."""
    limits, usage = present.limits, present.usage
    used: dict[str, tuple[float, str]] = {
        "maxSteps": (present.depth, "{used} of {limit} steps are taken"),
        "maxExecutionTime": (
            present.execution_ms,
            "{used_s:.1f} s of {limit_s:.1f} s of execution time are used",
        ),
        "maxTokens": (count_tokens(usage), "{used} of {limit} tokens are used"),
        "maxCost": (find_cost(usage) or 0, "${used:.4f} of ${limit:.4f} are spent"),
    }
    for name, (amount, words) in used.items():
        limit = limits.get(name)
        if limit is not None and amount >= limit:
            told = words.format(used=amount, limit=limit, used_s=amount / _MS, limit_s=limit / _MS)
            return Spent(name, limit, amount, told)
    return None


def count_tokens(usage: Mapping[str, Any]) -> int:
    """Return how many tokens went in and out, as far as agents reported them."""
    count = _number(usage.get("inputTokens")) + _number(usage.get("outputTokens"))
    return int(max(-sys.float_info.max, min(count, sys.float_info.max)))


def find_cost(usage: Mapping[str, Any]) -> float | None:
    """Return the cost in US dollars; None if no agent reported one."""
    cost = usage.get("costUsd")
    return None if isinstance(cost, bool) or not isinstance(cost, int | float) else cost


def find_time_left_s(present: ThreadState) -> float | None:
    """Return how many seconds of execution time are left; None if there is no limit."""
    limit = present.limits.get("maxExecutionTime")
    # A thread from elsewhere may have any limit.
    return None if limit is None else max(0.0, min(limit - present.execution_ms, LONGEST_MS) / _MS)


def _number(value: Any) -> float:
    # Agents may report anything under any name.
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
