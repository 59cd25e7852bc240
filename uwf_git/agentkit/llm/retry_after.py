"""Read from an endpoint's headers when to try again; an unreadable header is ignored.

Source: RFC 9110 section 10.2.3; the providers' pages on rate limits.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

# Each with the header that says what is left: only a used-up quota means waiting.
_DURATIONS = {
    "x-ratelimit-reset-requests": "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-tokens": "x-ratelimit-remaining-tokens",
}
_MOMENTS = {
    f"anthropic-ratelimit-{quota}-reset": f"anthropic-ratelimit-{quota}-remaining"
    for quota in ("requests", "tokens", "input-tokens", "output-tokens")
}
_EPOCH = "x-ratelimit-reset"

# Endpoints mean seconds or milliseconds since 1970, or seconds from now.
_A_YEAR_S = 366 * 86400
_MS_FROM = 100_000_000_000


def find_wait_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return how many seconds to wait before the next request; None if no header says it.

    *headers* are in lower case.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wait_s = _number(headers.get(name, ""))
        if wait_s is not None:
            return wait_s * unit
    date = _http_date(headers.get("retry-after", ""))
    return None if date is None else max(0.0, date - now_s)


def find_quota_wait_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return in how many seconds a used-up quota is full again; None if no header says it."""
    waits = [_duration(headers[name]) for name in _used_up(_DURATIONS, headers)]
    moments = [_moment(headers[name]) for name in _used_up(_MOMENTS, headers)]
    waits += [None if moment is None else moment - now_s for moment in moments]
    epoch = _number(headers.get(_EPOCH, ""))
    if epoch is not None:
        seconds = epoch / 1000 if epoch >= _MS_FROM else epoch
        waits.append(seconds if seconds < _A_YEAR_S else seconds - now_s)
    told = [wait for wait in waits if wait is not None]
    return max(0.0, *told) if told else None


def _used_up(quotas: Mapping[str, str], headers: Mapping[str, str]) -> list[str]:
    return [name for name, left in quotas.items() if name in headers and _is_none(left, headers)]


def _is_none(name: str, headers: Mapping[str, str]) -> bool:
    return headers.get(name, "0").strip() == "0"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _duration(text: str) -> float | None:
    """Read ``6m0.5s``."""
    parts = re.findall(_PART, text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return _number(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _http_date(text: str) -> float | None:
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
