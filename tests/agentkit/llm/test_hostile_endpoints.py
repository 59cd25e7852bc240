"""Endpoints that send for ever: the deadline holds, and no line is kept whole."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from uwf_git.agentkit.llm.http_client import HttpClient, NoReply

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def repeating(
    first: bytes, again: bytes, *, pause_s: float = 0.0
) -> Iterator[tuple[str, list[int]]]:
    """Serve one connection: *first*, then *again* until it is closed; count what was taken."""
    over = threading.Event()
    sent = [0]
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            line, _ = server.accept()
            with closing(line):
                line.settimeout(1)
                try:
                    line.recv(65536)
                    line.sendall(first)
                    while not over.wait(pause_s):
                        line.sendall(again)
                        sent[0] += len(again)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", sent
        finally:
            over.set()
            # A client whose time was over before it came must not leave the thread waiting for it.
            with suppress(OSError):
                socket.create_connection(server.getsockname()).close()
            thread.join()


def refusal(url: str, *, within_s: float, environ: dict[str, str] | None = None) -> NoReply:
    client = HttpClient(url, environ or {})
    with pytest.raises(NoReply) as caught:
        client.post({}, b"{}", time.monotonic() + within_s)
    return caught.value


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        (b"HTTP/1.1 200 O", b"K"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-More: 1\r\n"),
        (CHUNKED, b"1;"),
    ],
)
def test_deadline_holds_wherever_a_reply_drips(first: bytes, again: bytes) -> None:
    started = time.monotonic()
    with repeating(first, again, pause_s=0.02) as (url, _sent):
        assert refusal(url, within_s=0.3).trouble == "timed-out"
        assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-More: 1\r\n" * 1000),
    ],
)
def test_deadline_holds_against_a_flood(first: bytes, again: bytes) -> None:
    started = time.monotonic()
    with repeating(first, again) as (url, _sent):
        assert refusal(url, within_s=0.3).trouble == "timed-out"
        assert time.monotonic() - started < 20


def test_deadline_holds_for_the_answer_of_a_proxy() -> None:
    started = time.monotonic()
    with repeating(b"HTTP/1.1 200 Fine\r\nX: ", b"x", pause_s=0.02) as (url, _sent):
        environ = {"https_proxy": url.removesuffix("/v1")}
        refusal("https://example.com/v1", within_s=0.3, environ=environ)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("first", "trouble"),
    [
        (CHUNKED + b"1;", "broken"),
        (CHUNKED + b"1\r\nx\r\n0\r\nX-More: ", "broken"),
        (HEAD + b"X-Long: ", "broken"),
        (b"HTTP/1.1 200 ", "broken"),
        (HEAD + b"\r\n", "too-much"),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "broken"),
    ],
)
def test_line_without_an_end_is_not_kept(first: bytes, trouble: str) -> None:
    with repeating(first, b"x" * 65536) as (url, sent):
        assert refusal(url, within_s=60).trouble == trouble
        assert sent[0] < 64 * 1024 * 1024
