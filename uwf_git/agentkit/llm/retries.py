"""Post again when the endpoint is busy or unreachable, until the deadline.

Each wait is reported before it begins. An endpoint that says when to come back is not called
earlier.
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from uwf_git.agentkit.llm.http_json import HttpReply, HttpRequest, NoReply, split_url
from uwf_git.agentkit.llm.retry_after import find_quota_wait_s, find_wait_s

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
    """Call *post* until a retry would not help, or the tries or the time are used up.

    Raises:
        NoReply, BadUsage: from the last try.
    """
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
