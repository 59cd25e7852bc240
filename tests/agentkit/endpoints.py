"""Endpoints for tests, on loopback: a scripted model, and a server with any replies."""

import json
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from realcli.fake_model_server import Server, Wire

from uwf_git.agentkit.llm.endpoint import Api, Endpoint
from uwf_git.agentkit.llm.model import Model


class Odd(NamedTuple):
    """One reply, however odd."""

    status: int = 200
    body: Any = b""
    """Bytes, or anything else as JSON."""

    headers: Mapping[str, str] = {}
    length: int | None = None
    """The Content-Length to send; None: the true one."""

    hangs: bool = False
    """Send nothing until the test is over."""


@dataclass(slots=True)
class Served:
    """A server, and the requests that it got."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the requests."""

    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def scripted(*turns: dict[str, Any]) -> Iterator[Served]:
    """Serve a model that follows a script (realcli/fake_model_server.py)."""
    served = Served("")

    class Recording(Wire):
        def note(self, **fields: Any) -> None:
            served.asked.append(fields.get("body", {}))
            served.paths.append(self.path)

    options = Namespace(
        port=0, log=None, log_bodies=True, model="m", turns=list(turns), aside="", aside_none=True
    )
    server = Server(options)
    server.RequestHandlerClass = Recording
    with _running(server, served, server.stop):
        yield served


@contextmanager
def odd(*replies: Odd) -> Iterator[Served]:
    """Serve *replies*, one for each request; the last one repeats."""
    served = Served("")
    over = threading.Event()

    class Replying(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
            """Log nothing."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            served.asked.append(json.loads(raw))
            served.headers.append(dict(self.headers))
            served.paths.append(self.path)
            reply = replies[min(len(served.asked), len(replies)) - 1]
            if reply.hangs:
                over.wait()
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            length = len(body) if reply.length is None else reply.length
            for name, value in {"Content-Length": str(length), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    class Quiet(ThreadingHTTPServer):
        # Closing waits for them, so that no socket outlives its test.
        daemon_threads = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that closed the connection."""

    with _running(Quiet(("127.0.0.1", 0), Replying), served, over):
        yield served


@contextmanager
def _running(server: ThreadingHTTPServer, served: Served, over: threading.Event) -> Iterator[None]:
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def chat(content: str | None = "hello", **message: Any) -> dict[str, Any]:
    """Return the reply of a chat completion."""
    finish = message.pop("finish_reason", "stop")
    said = {"role": "assistant", "content": content, **message}
    return {
        "model": "m-1",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }


def endpoint(url: str, *, api: Api = "openai", **given: Any) -> Endpoint:
    """Return an endpoint at *url*."""
    known = {"section": "uwf.llm", "api": api, "url": url, "model": "m", "key": None}
    return Endpoint(**{"key_name": "OPENAI_API_KEY", **known, **given})


def model(url: str, *, say: Callable[[str], None] = lambda _: None, **given: Any) -> Model:
    """Return a model at *url* that writes nothing and does not wait."""
    return Model(endpoint(url, **given), {}, say=say, sleep=lambda _: None)
