"""Stop notices: a hook sends one over TCP when an AI tool stops, and whoever drives receives it.

One JSON object a connection, one line as the answer: ``{"status": "ok"}``, or ``{"status":
"error", "message": …}``. Source: seed 002.

A notice alone ends nothing: the driver ends the program only if its report is there and fits.
"""

import ipaddress
import json
import os
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.debug_log import debug
from uwf_git.errors import Refused

PHASES = ("planning", "executing")
"""The phases in which an agent is at work, and so can stop."""

MOST_BYTES = 64 * 1024
MOST_DEPTH = 20

_MARK = b"\xef\xbb\xbf"
_TOKEN = rb'(?s)"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[][{}]'
_SHOWN = 40

_POLL_S = 0.05
_PIECE_BYTES = 16 * 1024


class Notice(NamedTuple):
    """A tool has stopped; it decides nothing by itself."""

    phase: str
    thread: str | None
    head: str | None
    """The node after which the tool's turn began, and its thread; None: the sender did not say."""

    document: Mapping[str, Any]
    """All that was sent: its ``timestamp`` is recorded and never trusted."""


def find_object(received: bytes) -> bytes | None:
    """Return the JSON object that was *received*, None before it is whole; the rest is ignored."""
    if _MARK.startswith(received):
        return None
    content = received.removeprefix(_MARK)
    if not content.startswith(b"{"):
        raise ValueError("it does not begin with {")
    depth = 0
    for token in re.finditer(_TOKEN, content[:MOST_BYTES]):
        if token[0] in {b"{", b"["}:
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError(f"it has more than {MOST_DEPTH} levels")
        elif token[0] in {b"}", b"]"}:
            depth -= 1
            if depth == 0:
                return content[: token.end()]
    if len(content) >= MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return None


def parse_notice(content: bytes) -> Notice:
    """Parse the object that ``find_object`` found."""
    try:
        document = parse_strict_json(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start:,})") from error
    except BadJson as error:
        raise ValueError(f"it is {error.message}") from error
    if not isinstance(document, dict) or document.get("type") != "stop":
        raise ValueError('its type is not "stop"')
    if document.get("phase") not in PHASES:
        raise ValueError(f"its phase is not {' or '.join(PHASES)}")
    return Notice(document["phase"], _name(document, "thread"), _name(document, "head"), document)


def _name(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its {key} is not a text: {value!r:.{_SHOWN}}")
    return value or None


# The grace of a program that has told of its stop.


class TurnAtWork(NamedTuple):
    thread: str
    head: str
    phase: str


class StopGrace:
    """The grace of the turn at work. The stop server's threads may call ``take``.

    A tool stops at every turn of a conversation, and tells it twice: each notice begins the grace
    anew, and its end is told once, so that a program which goes on is left alone.
    """

    def __init__(self, grace_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Count *grace_s* seconds of *clock*; 0: a program is never ended."""
        self._grace_s, self._clock = grace_s, clock
        self._lock = threading.Lock()
        self._turn: TurnAtWork | None = None
        self._ends: float | None = None

    def begin(self, turn: TurnAtWork | None, *, has_stopped: bool = False) -> None:
        """Begin *turn*, or end the turn at work; earlier notices are forgotten.

        For a turn that is taken up again, *has_stopped* says that a notice has come before.
        """
        with self._lock:
            self._turn, self._ends = turn, None
            if has_stopped:
                self._renew()

    def take(self, notice: Notice) -> bool:
        """Take a notice; return whether it is about the turn at work. Other notices change nothing.

        Without thread and head a notice is about any turn of its phase.
        """
        with self._lock:
            turn = self._turn
            is_taken = (
                turn is not None
                and notice.phase == turn.phase
                and notice.thread in {None, turn.thread}
                and notice.head in {None, turn.head}
            )
            if is_taken:
                self._renew()
            return is_taken

    def is_over(self) -> bool:
        """Return whether the grace of the newest notice has run out; True once for each."""
        with self._lock:
            if self._ends is None or self._clock() < self._ends:
                return False
            self._ends = None
            return True

    def _renew(self) -> None:
        if self._grace_s > 0:
            self._ends = self._clock() + self._grace_s


# The server, in threads of whoever drives.


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


class StopServer(socketserver.ThreadingTCPServer):
    """A server that listens until it is closed; use it in a ``with``.

    *on_notice* is called for a single notice at a time, in a thread of the server; the sender gets
    its answer afterwards.
    """

    read_s = 5.0
    """How long a notice may take from the connection on."""

    drain_s = 1.0
    """How long the sender may take to hang up after the answer."""

    most_connections = 100
    """How many are served at once; one more, and the oldest is hung up on."""

    # What socketserver asks for. On Windows the first would let two servers have one port.
    allow_reuse_address = os.name == "posix"
    daemon_threads = True
    # Where it overflows the system lets a sender wait for a second, which is all that a hook has.
    request_queue_size = 128

    def __init__(
        self, on_notice: Callable[[Notice], None], *ports: int, address: str = "127.0.0.1"
    ) -> None:
        """Listen at the first of *ports* that is free; 0 is any free one."""
        self._on_notice = on_notice
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self._connections: dict[socket.socket, None] = {}
        self._listen(address, ports)
        self.address, self.port = str(self.server_address[0]), int(self.server_address[1])
        self.is_local = is_loopback(self.address)
        """Whether only this machine can connect."""

        threading.Thread(
            target=self.serve_forever, args=(_POLL_S,), name="uwf-stop-server", daemon=True
        ).start()

    def _listen(self, address: str, ports: tuple[int, ...]) -> None:
        for port in ports:
            try:
                found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
                self.address_family, *_, place = found[0]
                super().__init__((str(place[0]), port), _Conversation)
            except (OSError, ValueError, OverflowError) as error:
                if port == ports[-1]:
                    problem = error.strerror if isinstance(error, OSError) else None
                    raise CannotListen(address, port, problem or str(error)) from error
            else:
                return

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and hang up on who is connected. The second time does nothing."""
        self.shutdown()
        self.server_close()
        for each in list(self._connections):
            self._hang_up(each, socket.SHUT_RDWR)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            # The sender is gone, or this process has no descriptor left: trying again at once
            # would keep a processor busy.
            debug("9TQ4M2XK", "a connection was not accepted", problem=str(error))
            time.sleep(self.drain_s)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._connections) >= self.most_connections:
                # Whoever has a notice sends it at once, so the oldest has had the most time.
                self._hang_up(next(iter(self._connections)), socket.SHUT_RD)
            self._connections[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def _hang_up(self, connection: socket.socket, how: int) -> None:
        """Let the thread of *connection* come to the end of what is sent there."""
        self._connections.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(how)

    def is_connected(self, connection: socket.socket) -> bool:
        return connection in self._connections

    def take(self, notice: Notice) -> str | None:
        """Hand *notice* on; return why that was not possible."""
        try:
            with self._taking:
                self._on_notice(notice)
        except Exception as error:  # noqa: BLE001 (one notice may not end the server)
            debug("2HV7C5RD", "a stop notice was not taken", problem=repr(error))
            return "it was not taken"
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 (as it is called)
        """Tell of a connection that could not be served."""
        debug("5YV0D8WN", "a connection was not served", sender=repr(client_address))


class _Conversation(socketserver.BaseRequestHandler):
    """A connection: one notice, one answer."""

    server: StopServer
    request: socket.socket

    def handle(self) -> None:
        # The sender may be gone.
        with suppress(OSError):
            problem = self._find_problem()
            answer = {"status": "error", "message": problem} if problem else {"status": "ok"}
            self.request.settimeout(self.server.drain_s)
            self.request.sendall(json.dumps(answer).encode() + b"\n")
            self.request.shutdown(socket.SHUT_WR)
            # Bytes that nobody has read would make the system send a reset in place of the answer.
            for _ in self._receive(self.server.drain_s):
                pass

    def _find_problem(self) -> str | None:
        received = b""
        try:
            for piece in self._receive(self.server.read_s):
                received += piece
                whole = find_object(received)
                if whole is not None:
                    return self.server.take(parse_notice(whole))
        except ValueError as error:
            return f"not a stop notice: {error}"
        except TimeoutError:
            return f"not whole after {self.server.read_s:g} s"
        if not self.server.is_connected(self.request):
            return "not whole before too many others came"
        return "not a stop notice: it ends before its object is whole"

    def _receive(self, seconds: float) -> Iterator[bytes]:
        """Yield what is sent, piece by piece, to its end."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self.request.settimeout(left)
            piece = self.request.recv(_PIECE_BYTES)
            if not piece:
                return
            yield piece
        raise TimeoutError


def is_loopback(address: str) -> bool:
    """Check whether *address*, in digits, can only be reached from this machine."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
