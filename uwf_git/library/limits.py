"""Limits of a task, by their Python names.

Owns: the names. Knows nothing of: what is counted (engine/limits.py).
"""

from collections.abc import Mapping
from typing import Any, TypedDict


class Limits(TypedDict, total=False):
    """What a task may use up; a limit that is None is taken away, one that is not there stays."""

    max_steps: int | None
    max_execution_time: int | None
    """Milliseconds in which agents are at work."""

    max_tokens: int | None
    max_cost: float | None
    """In the currency in which agents report it."""


_NAMES = {
    "max_steps": "maxSteps",
    "max_execution_time": "maxExecutionTime",
    "max_tokens": "maxTokens",
    "max_cost": "maxCost",
}


def name_limits(limits: Limits | None) -> dict[str, Any]:
    """Give *limits* by the names that a StartNode has; what is no limit keeps its name.

    Whoever takes them refuses those.
    """
    asked: Mapping[str, Any] = limits or {}
    return {_NAMES.get(name, name): value for name, value in asked.items()}
