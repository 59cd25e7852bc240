"""Patience: asking an endpoint again that cannot answer now.

Owns: what is tried again, how often, and how long is waited in between.
Knows nothing of: what is asked.
Always true: whoever watches is told of every wait before it; nothing waits beyond the deadline;
an endpoint that says when to come back is not asked before.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from uwf_git.agentkit.http_json import HttpReply, HttpRequest, NoReply, post, split_url
from uwf_git.agentkit.retry_after import find_quota_wait_s, find_wait_s

# 529: overloaded (Anthropic). 409 and 425 are for other kinds of requests.
_TOO_MANY = 429
_TRIED_AGAIN = {408, 429, 500, 502, 503, 504, 520, 522, 524, 529}


class Patience(NamedTuple):
    """How long to go on."""

    most_tries: int = 5
    first_wait_s: float = 0.5
    """Doubled each time, where the endpoint does not say."""

    longest_wait_s: float = 60.0
    """An endpoint that wants more gets its way: the attempt fails, and says until when."""

    sleep: Callable[[float], None] = time.sleep


NO_HURRY = Patience()


def post_patiently(
    request: HttpRequest,
    patience: Patience,
    *,
    deadline: float,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> HttpReply:
    """Post until there is a reply that will not change by waiting, or patience is at its end.

    Raises:
        NoReply, BadUrl, BadProxy: as ``post``, from the last try.
    """
    where = split_url(request.url).netloc
    for tries in range(1, patience.most_tries + 1):
        reply: HttpReply | None = None
        wait_s = patience.first_wait_s * 2 ** (tries - 1) * _jitter()
        try:
            reply = post(request, deadline=deadline, environ=environ)
            if not _is_temporary(reply):
                return reply
            problem = f"{where} answers {reply.status}"
            wait_s = _told_wait_s(reply) or wait_s
        except NoReply as failure:
            if not failure.is_temporary or tries == patience.most_tries:
                raise
            problem = failure.message
            if time.monotonic() + wait_s >= deadline:
                raise
        is_last = tries == patience.most_tries or wait_s > patience.longest_wait_s
        if reply is not None and (is_last or time.monotonic() + wait_s >= deadline):
            return reply
        say(f"{problem}; trying again in {wait_s:.1f} s (try {tries + 1} of {patience.most_tries})")
        patience.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


def _is_temporary(reply: HttpReply) -> bool:
    # An empty account is a 429 too, and stays one however long we wait.
    return reply.status in _TRIED_AGAIN and b"insufficient_quota" not in reply.body


def _told_wait_s(reply: HttpReply) -> float | None:
    now_s = time.time()
    wait_s = find_wait_s(reply.headers, now_s=now_s)
    if wait_s is None and reply.status == _TOO_MANY:
        return find_quota_wait_s(reply.headers, now_s=now_s)
    return wait_s


def _jitter() -> float:
    """Give 0.75 to 1.25, so that agents that failed together do not come back together."""
    return 0.75 + int.from_bytes(os.urandom(2), "big") / 0x1FFFF
