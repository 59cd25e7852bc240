"""A model endpoint (OpenAI's protocol) that gives one fixed answer to every POST at once."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def answering(said: Mapping[str, Any]) -> Iterator[int]:
    """Answer on the yielded port, with *said* as the JSON that the model writes."""
    message = {"role": "assistant", "content": json.dumps(said)}
    document = {
        "model": "bench",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }
    body = json.dumps(document).encode()
    with socket.create_server(("127.0.0.1", 0)) as server:
        reply = (_HEAD % len(body)).encode() + body
        thread = threading.Thread(target=_serve, args=(server, reply), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            # Closing alone does not wake a thread that waits in accept.
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, reply: bytes) -> None:
    while True:
        try:
            line, _address = server.accept()
        except OSError:
            return
        with line, line.makefile("rb") as said, suppress(OSError):
            length = 0
            while head := said.readline().strip():
                name, _, value = head.lower().partition(b":")
                if name == b"content-length":
                    length = int(value)
            said.read(length)
            line.sendall(reply)
