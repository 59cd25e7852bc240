"""Usage reports of agents, and how they add up."""

import math
import sys
from typing import Any, TypeGuard


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
