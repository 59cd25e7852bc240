"""Usage reports of agents, and how they add up."""

import math
import sys
from collections.abc import Mapping
from typing import Any, TypeGuard

COUNTED = ("inputTokens", "outputTokens", "costUsd")
"""What limits of tokens and cost count."""


def add_usage(total: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Return *total* plus *report*: numbers add up, objects by key, other values are replaced."""
    result = dict(total)
    for key, value in report.items():
        known = result.get(key)
        if isinstance(value, dict):
            result[key] = add_usage(known if isinstance(known, dict) else {}, value)
        elif _is_number(value) and _is_number(known):
            result[key] = _sum(known, value)
        else:
            result[key] = value
    return result


def find_unfit(usage: Mapping[str, Any]) -> str | None:
    """Return which amount that limits count is none in *usage*; null is as if it were not there.

    A number below zero would lower the sum, and what is no number would take its place.
    """
    for name in COUNTED:
        value = usage.get(name)
        if value is not None and not (_is_number(value) and value >= 0):
            return f"{name} is {value!r:.60}, not a number from 0 on"
    return None


def drop_unfit(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return *usage* as it is recorded: {} if it is unfit, and without what is null."""
    if usage is None or find_unfit(usage) is not None:
        return {}
    return {key: value for key, value in usage.items() if value is not None}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sum(known: float, value: float) -> float:
    """Return the sum, at most the largest float: JSON has no infinity."""
    try:
        total = known + value
        if math.isfinite(total):
            return total
    except OverflowError:
        pass
    return math.copysign(sys.float_info.max, value)
