import json
import queue
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from uwf_git.plan.notice import MOST_BYTES, Notice
from uwf_git.plan.stop_server import (
    CannotListen,
    ServerLimits,
    StopServer,
    is_loopback,
)

STOP = b'{"type":"stop","phase":"executing","timestamp":"2026-01-02T03:04:05Z"}'
OK = {"status": "ok"}
SHORT = ServerLimits(read_s=0.1, drain_s=0.1)

Taken = queue.SimpleQueue[Notice]


@pytest.fixture
def taken() -> Taken:
    return queue.SimpleQueue()


@pytest.fixture
def server(taken: Taken) -> Iterator[StopServer]:
    with StopServer(taken.put, port=0) as server:
        yield server


def connect(server: StopServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def read_answer(client: socket.socket) -> Any:
    with client.makefile("rb") as answer:
        (line,) = answer.readlines()
    return json.loads(line)


def send(server: StopServer, *pieces: bytes, ends: bool = False) -> Any:
    with connect(server) as client:
        for piece in pieces:
            client.sendall(piece)
        if ends:
            client.shutdown(socket.SHUT_WR)
        return read_answer(client)


def test_notice_needs_no_newline_and_no_end(server: StopServer, taken: Taken) -> None:
    assert send(server, STOP) == OK
    assert send(server, STOP[:9], STOP[9:] + b"\n") == OK
    assert send(server, b"\xef\xbb\xbf", STOP, ends=True) == OK

    assert [taken.get(timeout=20).phase for _ in range(3)] == ["executing"] * 3


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it does not begin with {"),
        (b'{"type":"stop"}', "its phase is not planning or executing"),
        (b"{" * 30, "it has more than 20 levels"),
        (b'{"a":"' + b"x" * MOST_BYTES, "it has more than 65,536 bytes"),
        (b"{]", "it is not JSON"),
    ],
)
def test_anything_else_is_an_error_at_once(
    server: StopServer, taken: Taken, sent: bytes, problem: str
) -> None:
    answer = send(server, sent)

    assert answer["status"] == "error"
    assert answer["message"].startswith(f"not a stop notice: {problem}")
    assert taken.empty()


def test_end_before_the_object_is_whole(server: StopServer, taken: Taken) -> None:
    for sent in (b"", STOP[:-1]):
        answer = send(server, sent, ends=True)
        assert answer["message"] == "not a stop notice: it ends before its object is whole"
    assert taken.empty()


def test_huge_sender_gets_an_answer_and_no_reset(server: StopServer) -> None:
    """What nobody reads would make the system send a reset in place of the answer."""
    assert send(server, STOP + b" " * 1_000_000, ends=True) == OK


def send_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(b"x")


def test_slow_sender_is_told_and_hung_up_on(taken: Taken) -> None:
    with StopServer(taken.put, port=0, limits=SHORT) as server, connect(server) as client:
        client.sendall(STOP[:5])

        assert read_answer(client) == {"status": "error", "message": "not whole after 0.1 s"}
        with pytest.raises(OSError, match=r"(?i)reset|broken|abort"):
            send_for_ever(client)
    assert taken.empty()


def test_notices_get_past_those_who_never_send_theirs(taken: Taken) -> None:
    """A time limit that somebody waited for would outlast this test."""
    patient = ServerLimits(read_s=3600, drain_s=3600)
    with StopServer(taken.put, port=0, limits=patient) as server, ExitStack() as stack:
        idle = [stack.enter_context(connect(server)) for _ in range(200)]
        for each in idle[::2]:
            each.sendall(STOP[:5])

        assert send(server, STOP) == OK
        assert taken.get(timeout=20).phase == "executing"
        # 100 are served at once, this one among them.
        assert [read_answer(each)["status"] for each in idle[:101]] == ["error"] * 101
        idle[-2].sendall(STOP[5:])
        assert read_answer(idle[-2]) == OK


def test_receiver_that_fails_ends_nothing(taken: Taken) -> None:
    def take(notice: Notice) -> None:
        taken.put(notice)
        if notice.thread == "bad":
            raise RuntimeError("no")

    bad = STOP[:-1] + b',"thread":"bad"}'
    with StopServer(take, port=0) as server:
        assert send(server, bad) == {"status": "error", "message": "it was not taken"}
        assert send(server, STOP) == OK


def test_sender_that_hangs_up_ends_nothing(server: StopServer) -> None:
    for _ in range(20):
        client = connect(server)
        client.sendall(STOP[:10])
        # A reset, rather than an end.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()

    assert send(server, STOP) == OK


def test_taken_port(taken: Taken) -> None:
    with StopServer(taken.put) as first, StopServer(taken.put) as second:
        # Another program of this machine may have the usual port.
        assert first.port != second.port
        assert send(second, STOP) == OK
        with pytest.raises(CannotListen) as refused:
            StopServer(taken.put, port=first.port)
    assert refused.value.message.startswith(
        f"no stop notices can be received at 127.0.0.1 port {first.port}: "
    )


@pytest.mark.parametrize("port", [-1, 1 << 16, 1 << 17])
def test_port_that_is_none(taken: Taken, port: int) -> None:
    with pytest.raises(CannotListen):
        StopServer(taken.put, port=port)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback(address: str, *, expected: bool) -> None:
    assert is_loopback(address) == expected


def test_closed_server_frees_its_port(taken: Taken) -> None:
    server = StopServer(taken.put, port=0)
    with connect(server) as client:
        # Accepted in the order in which they came.
        assert send(server, STOP) == OK
        server.close()
        server.close()

        assert client.recv(1) == b""
    with StopServer(taken.put, port=server.port) as again:
        assert again.port == server.port
        assert again.is_local
