"""A git server that breaks the protocol (version 0): it sends any refs and any answer."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

NOTHING = b""


def line(text: bytes) -> bytes:
    """Write one line as git's protocol does."""
    return f"{len(text) + 4:04x}".encode() + text


def advertised(refs: Mapping[str, str], capabilities: bytes = b"ofs-delta") -> bytes:
    """Write the refs that a server has."""
    rows = [f"{oid} {name}".encode() for name, oid in refs.items()]
    rows[0] += b"\0" + capabilities
    return b"".join(line(row + b"\n") for row in rows) + b"0000"


@contextmanager
def liar(greeting: bytes, answer: bytes = NOTHING, *, silent: bool = False) -> Iterator[str]:
    """Send *greeting* to each client, and *answer* after its request; return the URL.

    Without an answer it sends only the greeting.

    A *silent* server sends nothing and does not hang up.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()
        said = (greeting, answer)
        serve = _keep_silent if silent else _serve
        serving = threading.Thread(target=serve, args=(server, said, stop))
        serving.start()
        try:
            yield f"git://127.0.0.1:{server.getsockname()[1]}/hub.git"
        finally:
            stop.set()
            # Wake a server that still waits in accept.
            with suppress(OSError):
                socket.create_connection(server.getsockname(), timeout=5).close()
            serving.join()


def _keep_silent(server: socket.socket, _said: tuple[bytes, bytes], stop: threading.Event) -> None:
    with server.accept()[0]:
        stop.wait(10)


def _serve(server: socket.socket, said: tuple[bytes, bytes], stop: threading.Event) -> None:
    greeting, answer = said
    while not stop.is_set():
        connection = server.accept()[0]
        with connection, suppress(OSError):
            connection.settimeout(10)
            connection.sendall(greeting)
            if not answer:
                connection.shutdown(socket.SHUT_WR)
            heard = b""
            while b"done\n" not in heard:
                more = connection.recv(65536)
                if not more:
                    break
                heard += more
            connection.sendall(answer)
