"""Asking again, and when not to."""

import socket
import time
from contextlib import closing

import pytest
from agentkit.endpoints import Odd, Served, odd
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.http_client import (
    HttpClient,
    HttpReply,
    HttpRequest,
    NoReply,
    RetryPolicy,
    find_quota_wait_s,
    find_wait_s,
    post_with_retries,
)


class Watched:
    """One post with retries: its waits, and its messages."""

    def __init__(self, url: str, *, within_s: float = 600, most_tries: int = 5) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []
        self._within_s = within_s
        self._request = HttpRequest(url, {}, b"{}")
        self._retries = RetryPolicy(most_tries=most_tries, sleep=self.waits.append)

    def post(self) -> HttpReply:
        return post_with_retries(
            HttpClient({}).post,
            self._request,
            self._retries,
            deadline=time.monotonic() + self._within_s,
            say=self.said.append,
        )


def host(served: Served) -> str:
    return served.url.removeprefix("http://").removesuffix("/v1")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_server_that_is_busy_is_asked_again_and_we_say_so(status: int) -> None:
    with odd(Odd(status), Odd(200, {"ok": True})) as served:
        watched = Watched(served.url)
        assert watched.post().status == 200
    assert len(watched.waits) == 1
    line = f"{host(served)} answers {status}; trying again in {watched.waits[0]:.1f} s (try 2 of 5)"
    assert watched.said == [line]


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422])
def test_what_will_not_change_is_not_asked_again(status: int) -> None:
    with odd(Odd(status)) as served:
        watched = Watched(served.url)
        assert watched.post().status == status
    assert len(served.asked) == 1
    assert not watched.said


def test_an_empty_account_is_not_asked_again() -> None:
    body = {"error": {"code": "insufficient_quota"}}
    with odd(Odd(429, body)) as served:
        assert Watched(served.url).post().status == 429
    assert len(served.asked) == 1


def test_waits_double_and_come_to_an_end() -> None:
    with odd(Odd(500)) as served:
        watched = Watched(served.url)
        assert watched.post().status == 500
    assert len(served.asked) == 5
    for wait_s, expected in zip(watched.waits, (0.5, 1, 2, 4), strict=True):
        assert 0.75 * expected <= wait_s <= 1.25 * expected


def test_an_endpoint_that_says_when_is_not_asked_before() -> None:
    with odd(Odd(429, headers={"Retry-After": "7"}), Odd()) as served:
        watched = Watched(served.url)
        watched.post()
    assert watched.waits == [7.0]


def test_the_reset_of_a_quota_counts_where_the_quota_is_the_matter() -> None:
    headers = {"X-RateLimit-Reset-Requests": "9s"}
    with odd(Odd(429, headers=headers), Odd(500, headers=headers), Odd()) as served:
        watched = Watched(served.url)
        watched.post()
    assert watched.waits[0] == 9.0
    assert watched.waits[1] < 2


@pytest.mark.parametrize("told", ["61", "86400"])
def test_longer_wait_than_a_minute_is_not_retried(told: str) -> None:
    with odd(Odd(429, headers={"Retry-After": told})) as served:
        watched = Watched(served.url)
        assert watched.post().status == 429
    assert watched.waits == []


def test_nothing_waits_beyond_the_deadline() -> None:
    with odd(Odd(429, headers={"Retry-After": "30"})) as served:
        watched = Watched(served.url, within_s=10)
        assert watched.post().status == 429
    assert watched.waits == []


def test_a_refused_connection_is_tried_again_and_then_reported() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    watched = Watched(f"http://127.0.0.1:{port}/v1", most_tries=3)
    with pytest.raises(NoReply, match="connection refused"):
        watched.post()
    assert len(watched.waits) == 2


def test_a_server_that_hangs_is_not_asked_again() -> None:
    with odd(Odd(hangs=True)) as served:
        watched = Watched(served.url, within_s=0.05)
        with pytest.raises(NoReply):
            watched.post()
    assert watched.waits == []


NOW_S = 1_760_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 09 Oct 2025 08:54:20 GMT"}, 60),
        ({"retry-after": "Thu, 09 Oct 2025 08:00:00 GMT"}, 0),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(
    headers: dict[str, str], wait_s: float | None
) -> None:
    assert find_wait_s(headers, now_s=NOW_S) == wait_s


def test_a_quota_that_is_used_up_says_when_it_is_full_again() -> None:
    for headers, wait_s in [
        ({"x-ratelimit-reset-requests": "6m0.5s"}, 360.5),
        ({"x-ratelimit-reset-tokens": "12ms", "x-ratelimit-remaining-tokens": "0"}, 0.012),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "5"}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "2s"}, 2),
        ({"anthropic-ratelimit-tokens-reset": "2025-10-09T08:54:20Z"}, 60),
        ({"anthropic-ratelimit-tokens-reset": "tomorrow"}, None),
        ({"x-ratelimit-reset": "1760000060"}, 60),
        ({"x-ratelimit-reset": "1760000060000"}, 60),
        ({"x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-reset": "1760000000"}, 0),
        ({"x-ratelimit-reset-requests": "in 6m"}, None),
        ({}, None),
    ]:
        assert find_quota_wait_s(headers, now_s=NOW_S) == pytest.approx(wait_s)


NAMES = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-reset",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_whatever_the_headers_hold_a_wait_is_no_less_than_nothing(headers: dict[str, str]) -> None:
    for find in (find_wait_s, find_quota_wait_s):
        wait_s = find(headers, now_s=NOW_S)
        assert wait_s is None or wait_s >= 0
