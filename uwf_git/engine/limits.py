"""Limits: how much a thread may still do.

A limit is compared with what was recorded, so every machine decides alike, and only before a step:
a running step is not cut short by tokens or cost.
"""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.thread import LONGEST_MS, ThreadState

_MS = 1000
_TOLD = {
    "maxSteps": "{used} of {limit} steps are taken",
    "maxExecutionTime": "{used_s:.1f} s of {limit_s:.1f} s of execution time are used",
    "maxTokens": "{used} of {limit} tokens are used",
    "maxCost": "${used:.4f} of ${limit:.4f} are spent",
}


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
    for name, amount in list_used(present).items():
        limit = present.limits[name]
        if amount >= limit:
            told = _TOLD[name].format(
                used=amount, limit=limit, used_s=amount / _MS, limit_s=limit / _MS
            )
            return Spent(name, limit, amount, told)
    return None


def list_used(present: ThreadState) -> dict[str, float]:
    """Return how much of each limit of a thread is used."""
    used: dict[str, float] = {
        "maxSteps": present.depth,
        "maxExecutionTime": present.execution_ms,
        "maxTokens": count_tokens(present.usage),
        "maxCost": find_cost(present.usage) or 0,
    }
    return {name: used[name] for name in used if present.limits.get(name) is not None}


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
