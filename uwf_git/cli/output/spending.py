"""What agents have used: tokens, and US dollars."""

from collections.abc import Mapping
from typing import Any, TypeGuard

_THOUSAND, _MILLION = 1000, 1_000_000


def describe_usage(usage: Mapping[str, Any], *, short: bool = False) -> list[str]:
    """Return the tokens and the cost, as far as agents reported them; *short* rounds."""
    write = _round if short else "{:,}".format
    tokens = {"in": usage.get("inputTokens"), "out": usage.get("outputTokens")}
    told = [
        f"{write(int(number))}{' tokens' if way == 'in' else ''} {way}"
        for way, number in tokens.items()
        if _is_number(number)
    ]
    parts = [", ".join(told)] if told else []
    cost = usage.get("costUsd")
    if _is_number(cost):
        parts.append(f"{cost:.2f} USD" if short else f"{cost:.4f} USD")
    return parts


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _round(number: int) -> str:
    if number < _THOUSAND:
        return str(number)
    if number < _MILLION:
        return f"{number / _THOUSAND:.0f}k"
    return f"{number / _MILLION:.1f}M"
