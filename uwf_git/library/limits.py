"""The limits of a task under their Python names; engine/limits.py counts."""

from collections.abc import Mapping
from typing import Any, TypedDict


class Limits(TypedDict, total=False):
    """What a task may use up; None removes a limit, and a missing key keeps it."""

    max_steps: int | None
    max_execution_time: int | None
    """Milliseconds that agents run."""

    max_tokens: int | None
    max_cost: float | None
    """In the currency that the agents report."""


_NAMES = {
    "max_steps": "maxSteps",
    "max_execution_time": "maxExecutionTime",
    "max_tokens": "maxTokens",
    "max_cost": "maxCost",
}


def to_limit_names(limits: Limits | None) -> dict[str, Any]:
    """Return *limits* under the names of a StartNode; an unknown name is refused later."""
    given: Mapping[str, Any] = limits or {}
    return {_NAMES.get(name, name): value for name, value in given.items()}
