import json
import queue
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.plan.hooks import (
    CannotListen,
    Notice,
    StopGrace,
    StopServer,
    TurnAtWork,
    find_object,
    is_loopback,
    parse_notice,
)
from uwf_git.plan.stop_hook import MOST_BYTES

NOTICES = Path(__file__).parent / "made_up" / "notices.json"


DOCUMENT = {"type": "stop", "phase": "planning", "timestamp": "2026-01-02T03:04:05Z"}
TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", "}{", "]", '\\"'])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def scan(*pieces: bytes) -> bytes | None:
    return next((found for each in accumulate(pieces) if (found := find_object(each))), None)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.data())
def test_object_is_whole_at_its_last_bracket_however_it_comes(
    value: dict[str, Any], draws: st.DataObject
) -> None:
    is_ascii, has_mark = draws.draw(st.booleans()), draws.draw(st.booleans())
    whole = json.dumps(value, ensure_ascii=is_ascii).encode()
    sent = (b"\xef\xbb\xbf" if has_mark else b"") + whole
    cuts = sorted(draws.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]

    assert scan(*pieces) == whole
    assert scan(*pieces[:-1], pieces[-1] + b'\n{"more"}') == whole
    assert scan(sent[:-1]) is None


def test_notices_and_what_is_none(golden: Callable[[str, str], None]) -> None:
    def tell_notice(sent: str) -> object:
        whole = sent.encode("latin-1")
        assert scan(whole) == whole
        return parse_notice(whole)

    def tell_scan(sent: str) -> object:
        whole = sent.encode("latin-1")
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the golden has its words)
            scan(*(whole[place : place + 99] for place in range(0, len(whole), 99)))
        with pytest.raises(ValueError, match=re.escape(str(caught.value))):
            scan(whole)
        raise caught.value

    def take(more: dict[str, str]) -> bool:
        grace = StopGrace(10)
        grace.begin(TurnAtWork("T", "H", "planning"))
        return grace.take(parse_notice(json.dumps(DOCUMENT | more).encode()))

    answers = {"parse_notice": tell_notice, "scan": tell_scan, "take": take}
    golden("plan/notices.txt", tell_cases(NOTICES, answers | {"is_loopback": is_loopback}))


def test_notice_without_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 65,536 bytes"):
        scan(b'{"a":"' + b"x" * MOST_BYTES)
    with pytest.raises(ValueError, match="too many digits"):
        parse_notice(b'{"a":' + b"9" * 5000 + b"}")


TURN = TurnAtWork("T", "H", "executing")
OF_THE_SEED = Notice("executing", None, None, {})
OF_THE_HOOK = Notice("executing", "T", "H", {})


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_grace_begins_with_the_newest_notice() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN)
    assert not grace.is_over()

    assert grace.take(OF_THE_HOOK)
    clock.now_s += 9
    assert not grace.is_over()
    assert grace.take(OF_THE_SEED)
    clock.now_s += 9
    assert not grace.is_over()
    clock.now_s += 1
    assert grace.is_over()


def test_end_of_a_grace_is_told_once() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN)
    for _ in range(2):
        assert grace.take(OF_THE_HOOK)
        clock.now_s += 99
        # Without a report the program goes on, and its next stop counts again.
        assert [grace.is_over(), grace.is_over()] == [True, False]


def test_next_turn_knows_of_no_notice() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    assert not grace.take(OF_THE_SEED)
    grace.begin(TURN)
    assert grace.take(OF_THE_HOOK)

    grace.begin(TURN._replace(head="H2"))

    clock.now_s += 99
    assert not grace.is_over()
    assert not grace.take(OF_THE_HOOK)
    grace.begin(None)
    assert not grace.take(OF_THE_SEED)


def test_no_grace_is_for_ever() -> None:
    clock = Clock()
    grace = StopGrace(0, clock=clock)
    grace.begin(TURN)

    assert grace.take(OF_THE_HOOK)
    clock.now_s += 99
    assert not grace.is_over()


STOP = b'{"type":"stop","phase":"executing","timestamp":"2026-01-02T03:04:05Z"}'
OK = {"status": "ok"}

Taken = queue.SimpleQueue[Notice]


@pytest.fixture
def taken() -> Taken:
    return queue.SimpleQueue()


@pytest.fixture
def server(taken: Taken) -> Iterator[StopServer]:
    with StopServer(taken.put, 0) as server:
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
    ],
)
def test_anything_else_is_an_error_at_once(
    server: StopServer, taken: Taken, sent: bytes, problem: str
) -> None:
    answer = send(server, sent)

    assert answer["status"] == "error"
    assert answer["message"].startswith(f"not a stop notice: {problem}")
    assert taken.empty()


def test_huge_sender_gets_an_answer_and_no_reset(server: StopServer) -> None:
    """What nobody reads would make the system send a reset in place of the answer."""
    assert send(server, STOP + b" " * 1_000_000, ends=True) == OK


def send_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(b"x")


class Hasty(StopServer):
    """A server that waits for nobody."""

    read_s = drain_s = 0.1


class Patient(StopServer):
    """A server whose time limits would outlast this test."""

    read_s = drain_s = 3600


def test_slow_sender_is_told_and_hung_up_on(taken: Taken) -> None:
    with Hasty(taken.put, 0) as server, connect(server) as client:
        client.sendall(STOP[:5])

        assert read_answer(client) == {"status": "error", "message": "not whole after 0.1 s"}
        with pytest.raises(OSError, match=r"(?i)reset|broken|abort"):
            send_for_ever(client)
    assert taken.empty()


def test_notices_get_past_those_who_never_send_theirs(taken: Taken) -> None:
    with Patient(taken.put, 0) as server, ExitStack() as stack:
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
    with StopServer(take, 0) as server:
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
    with StopServer(taken.put, 9527, 0) as first, StopServer(taken.put, 9527, 0) as second:
        # Another program of this machine may have the usual port.
        assert first.port != second.port
        assert send(second, STOP) == OK
        with pytest.raises(CannotListen) as refused:
            StopServer(taken.put, first.port)
    assert refused.value.message.startswith(
        f"no stop notices can be received at 127.0.0.1 port {first.port}: "
    )


def test_closed_server_frees_its_port(taken: Taken) -> None:
    server = StopServer(taken.put, 0)
    with connect(server) as client:
        # Accepted in the order in which they came.
        assert send(server, STOP) == OK
        server.close()
        server.close()

        assert client.recv(1) == b""
    with StopServer(taken.put, server.port) as again:
        assert again.port == server.port
        assert again.is_local
