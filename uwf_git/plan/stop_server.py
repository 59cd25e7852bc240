"""The stop server: receives stop notices over TCP, in a thread of whoever drives.

One JSON object a connection, one line as the answer: ``{"status": "ok"}``, or ``{"status":
"error", "message": …}``. Source: seed 002.
"""

import ipaddress
import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.plan.notice import BadNotice, Notice, NoticeScanner, parse_notice

ADDRESS, PORT = "127.0.0.1", 9527

_PIECE_BYTES = 16 * 1024
_LAST_PORT = 65535

# Where it overflows the system lets a sender wait for a second, which is all that a hook has.
_BACKLOG = 128


class CannotListen(Refused):
    """The address, or the port that was asked for, is not to be had."""

    code = "cannot-listen"

    def __init__(self, address: str, port: int, problem: str) -> None:
        super().__init__(
            f"no stop notices can be received at {address} port {port}: {problem}",
            hint="name another by --port, or none: then a free one is taken",
            address=address,
            port=port,
        )


class ServerLimits(NamedTuple):
    """What a sender may take; the bytes and levels of a notice are limited in notice.py."""

    read_s: float = 5.0
    """How long a notice may take from the connection on."""

    drain_s: float = 1.0
    """How long the sender may take to hang up after the answer."""

    connections: int = 100
    """How many are served at once; one more, and the oldest is hung up on."""


DEFAULT_LIMITS = ServerLimits()


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    deadline: float
    scanner: NoticeScanner = field(default_factory=NoticeScanner)
    is_answered: bool = False


class StopServer:
    """A server that listens until it is closed; use it in a ``with``.

    *on_notice* is called in the server's thread; the sender gets its answer afterwards.

    Raises:
        CannotListen: the address is wrong, or *port* is taken.
    """

    def __init__(
        self,
        on_notice: Callable[[Notice], None],
        *,
        address: str = ADDRESS,
        port: int | None = None,
        usual_port: int = PORT,
        limits: ServerLimits = DEFAULT_LIMITS,
    ) -> None:
        """Listen at *port*; by default at *usual_port*, or at a free one if that is taken."""
        self._on_notice, self._limits = on_notice, limits
        self._listening = _listen(address, (usual_port, 0) if port is None else (port,))
        self._listening.setblocking(False)  # noqa: FBT003 (its only argument, by position only)
        self.address = address
        self.port: int = self._listening.getsockname()[1]
        self.is_local = is_loopback(self._listening.getsockname()[0])
        """Whether only this machine can connect."""

        self._waker, self._woken = socket.socketpair()
        self._open: dict[socket.socket, _Connection] = {}
        self._rests_until = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="uwf-stop-server", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and hang up on who is connected. The second time does nothing."""
        if self._waker.fileno() == -1:
            return
        self._waker.close()
        self._thread.join()
        for each in (*self._open, self._listening, self._woken):
            each.close()
        self._selector.close()

    def _serve(self) -> None:
        while True:
            self._listen_if_rested()
            for key, _ in self._selector.select(self._find_wait()):
                if key.fileobj is self._woken:
                    return
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj in self._open:
                    self._receive(key.data)
            for connection in list(self._open.values()):
                if connection.deadline <= time.monotonic():
                    self._expire(connection)

    def _listen_if_rested(self) -> None:
        wants = self._rests_until <= time.monotonic()
        if wants and self._listening not in self._selector.get_map():
            self._selector.register(self._listening, selectors.EVENT_READ)
        elif not wants and self._listening in self._selector.get_map():
            self._selector.unregister(self._listening)

    def _find_wait(self) -> float | None:
        now = time.monotonic()
        moments = [each.deadline for each in self._open.values()]
        if self._rests_until > now:
            moments.append(self._rests_until)
        return max(0.0, min(moments) - now) if moments else None

    def _accept(self) -> None:
        try:
            accepted, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # The sender is gone, or this process has no descriptor left: the next select would
            # return at once.
            debug("9TQ4M2XK", "a connection was not accepted", problem=str(error))
            self._rests_until = time.monotonic() + self._limits.drain_s
            return
        if len(self._open) >= self._limits.connections:
            # Whoever has a notice sends it at once, so the oldest has had the most time.
            self._make_room(next(iter(self._open.values())))
        accepted.setblocking(False)  # noqa: FBT003 (its only argument, by position only)
        connection = _Connection(accepted, time.monotonic() + self._limits.read_s)
        self._open[accepted] = connection
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        try:
            piece = connection.socket.recv(_PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._hang_up(connection)
            return
        if connection.is_answered:
            if not piece:
                self._hang_up(connection)
            return
        try:
            notice = _take_piece(connection, piece)
        except BadNotice as error:
            self._answer(connection, f"not a stop notice: {error}")
        else:
            if notice is not None:
                self._answer(connection, self._tell(notice))

    def _tell(self, notice: Notice) -> str | None:
        try:
            self._on_notice(notice)
        except Exception as error:  # noqa: BLE001 (one notice may not end the server)
            debug("2HV7C5RD", "a stop notice was not taken", problem=repr(error))
            return "it was not taken"
        return None

    def _answer(self, connection: _Connection, problem: str | None) -> None:
        answer = {"status": "ok"} if problem is None else {"status": "error", "message": problem}
        connection.is_answered = True
        connection.deadline = time.monotonic() + self._limits.drain_s
        # Bytes that nobody has read would make the system send a reset in place of the answer.
        with suppress(OSError):
            connection.socket.sendall(json.dumps(answer).encode() + b"\n")
            connection.socket.shutdown(socket.SHUT_WR)

    def _expire(self, connection: _Connection) -> None:
        if connection.is_answered:
            self._hang_up(connection)
        else:
            self._answer(connection, f"not whole after {self._limits.read_s:g} s")

    def _make_room(self, connection: _Connection) -> None:
        self._receive(connection)
        if not connection.is_answered:
            self._answer(connection, "not whole before too many others came")
        if connection.socket in self._open:
            self._hang_up(connection)

    def _hang_up(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        del self._open[connection.socket]
        connection.socket.close()


def _take_piece(connection: _Connection, piece: bytes) -> Notice | None:
    if not piece:
        raise BadNotice("it ends before its object is whole")
    whole = connection.scanner.add(piece)
    return None if whole is None else parse_notice(whole)


def is_loopback(address: str) -> bool:
    """Check whether *address*, in digits, is one that only this machine can reach."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _listen(address: str, ports: Sequence[int]) -> socket.socket:
    for each in ports:
        try:
            return _listen_at(address, each)
        except (OSError, ValueError) as error:
            if each == ports[-1]:
                problem = error.strerror if isinstance(error, OSError) else None
                raise CannotListen(address, each, problem or str(error)) from error
    raise AssertionError  # the last port either listens or raises


def _listen_at(address: str, port: int) -> socket.socket:
    if not 0 <= port <= _LAST_PORT:
        # The C library would take its last 16 bits.
        raise ValueError(f"a port is a number up to {_LAST_PORT}")
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, place = found[0]
    return socket.create_server(place[:2], family=family, backlog=_BACKLOG)
