"""Usage: what agents say they have spent.

Owns: how reports add up. Knows nothing of: which numbers an agent reports.
"""

from typing import Any


def add_usage(total: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Give *total* with *report* added: numbers add up, objects by key, the rest is replaced."""
    result = dict(total)
    for key, value in report.items():
        known = result.get(key)
        if isinstance(value, dict):
            result[key] = add_usage(known if isinstance(known, dict) else {}, value)
        elif _is_number(value) and _is_number(known):
            result[key] = known + value
        else:
            result[key] = value
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
