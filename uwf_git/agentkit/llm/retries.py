"""Post again when the endpoint is busy or unreachable, until the deadline.

Each wait is reported before it begins. An endpoint that says when to come back is not called
earlier.
"""

import math
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from uwf_git.agentkit.llm.http_client import HttpReply, HttpRequest, NoReply, split_url

# 529: overloaded (Anthropic). 409 and 425 are for other kinds of requests.
_TOO_MANY = 429
_RETRIED = {408, 429, 500, 502, 503, 504, 520, 522, 524, 529}


class RetryPolicy(NamedTuple):
    """How often to try, and how long to wait in between."""

    most_tries: int = 5
    first_wait_s: float = 0.5
    """Doubled each time, unless the endpoint names a wait."""

    longest_wait_s: float = 60.0
    """If the endpoint asks for more, do not wait: the attempt fails and says until when."""

    sleep: Callable[[float], None] = time.sleep


DEFAULT_RETRIES = RetryPolicy()


def post_with_retries(
    post: Callable[[HttpRequest, float], HttpReply],
    request: HttpRequest,
    retries: RetryPolicy,
    *,
    deadline: float,
    say: Callable[[str], None],
) -> HttpReply:
    """Call *post* until a retry would not help, or the tries or the time are used up."""
    where = split_url(request.url).netloc
    for tries in range(1, retries.most_tries + 1):
        reply: HttpReply | None = None
        wait_s = retries.first_wait_s * 2 ** (tries - 1) * _jitter()
        try:
            reply = post(request, deadline)
            if not _is_temporary(reply):
                return reply
            problem = f"{where} answers {reply.status}"
            wait_s = _read_wait_s(reply) or wait_s
        except NoReply as failure:
            if not failure.is_temporary or tries == retries.most_tries:
                raise
            problem = failure.message
            if time.monotonic() + wait_s >= deadline:
                raise
        is_last = tries == retries.most_tries or wait_s > retries.longest_wait_s
        if reply is not None and (is_last or time.monotonic() + wait_s >= deadline):
            return reply
        say(f"{problem}; trying again in {wait_s:.1f} s (try {tries + 1} of {retries.most_tries})")
        retries.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


def _is_temporary(reply: HttpReply) -> bool:
    # An empty account is a 429 too; waiting does not help there.
    return reply.status in _RETRIED and b"insufficient_quota" not in reply.body


def _read_wait_s(reply: HttpReply) -> float | None:
    now_s = time.time()
    wait_s = find_wait_s(reply.headers, now_s=now_s)
    if wait_s is None and reply.status == _TOO_MANY:
        return find_quota_wait_s(reply.headers, now_s=now_s)
    return wait_s


def _jitter() -> float:
    """Return 0.75 to 1.25, so that agents that failed together do not retry together."""
    return 0.75 + int.from_bytes(os.urandom(2), "big") / 0x1FFFF


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
    """Return how many seconds to wait by *headers* in lower case; None if no header says it."""
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
