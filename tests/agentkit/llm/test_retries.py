"""Asking again, and when not to."""

import socket
import time
from contextlib import closing

import pytest
from agentkit.endpoints import Odd, Served, odd

from uwf_git.agentkit.llm.http_client import HttpClient
from uwf_git.agentkit.llm.http_json import HttpReply, HttpRequest, NoReply
from uwf_git.agentkit.llm.retries import RetryPolicy, post_with_retries


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
