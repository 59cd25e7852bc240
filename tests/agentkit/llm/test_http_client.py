"""One POST, against servers that answer, lie, hang and go away."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from agentkit.endpoints import Odd, odd

from uwf_git.agentkit.llm import http_client
from uwf_git.agentkit.llm.http_client import HttpClient
from uwf_git.agentkit.llm.http_json import HttpReply, HttpRequest, NoReply


def send(url: str, *, within_s: float = 20, environ: dict[str, str] | None = None) -> HttpReply:
    request = HttpRequest(url, {"Content-Type": "application/json"}, b'{"a": 1}')
    return HttpClient(environ or {}).post(request, time.monotonic() + within_s)


@contextmanager
def listening(*sent: bytes) -> Iterator[str]:
    """Serve one connection with raw bytes, and close it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            line, _ = server.accept()
            with closing(line):
                line.recv(65536)
                for piece in sent:
                    line.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        thread.join()


def refused(url: str, **environ: str) -> NoReply:
    with pytest.raises(NoReply) as caught:
        send(url, environ=environ)
    return caught.value


def test_a_reply_comes_back_with_its_status_headers_and_body() -> None:
    with odd(Odd(418, {"x": 1}, {"X-Told": "yes"})) as served:
        reply = send(f"{served.url}/chat?api-version=3")
    assert (reply.status, json.loads(reply.body), reply.headers["x-told"]) == (418, {"x": 1}, "yes")
    assert served.asked == [{"a": 1}]
    assert served.paths == ["/v1/chat?api-version=3"]


def test_a_redirect_is_not_followed() -> None:
    with odd(Odd(307, headers={"Site": "http://127.0.0.1:9/"})) as served:
        assert send(served.url).status == 307
    assert len(served.asked) == 1


def test_refused_connection_is_reported_with_the_host() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    failure = refused(f"http://127.0.0.1:{port}/v1")
    assert failure.message == f"127.0.0.1:{port}: connection refused"
    assert failure.is_temporary


def test_a_server_that_hangs_is_left_at_the_deadline() -> None:
    with odd(Odd(hangs=True)) as served, pytest.raises(NoReply) as caught:
        send(served.url, within_s=0.05)
    assert caught.value.trouble == "timed-out"
    assert not caught.value.is_temporary


def test_a_server_that_drips_is_left_at_the_deadline_too() -> None:
    over = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def drip() -> None:
            line, _ = server.accept()
            with closing(line):
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not over.wait(0.01):
                    try:
                        line.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        started = time.monotonic()
        with pytest.raises(NoReply) as caught:
            send(f"http://127.0.0.1:{server.getsockname()[1]}/", within_s=0.2)
        over.set()
        thread.join()
    assert caught.value.trouble == "timed-out"
    assert time.monotonic() - started < 20


def test_a_connection_serves_the_next_request_too() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            line, _ = server.accept()
            with closing(line):
                for _ in range(2):
                    received = b""
                    while not received.endswith(b"{}"):
                        received += line.recv(65536)
                    line.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        client = HttpClient({})
        request = HttpRequest(f"http://127.0.0.1:{server.getsockname()[1]}/v1", {}, b"{}")
        bodies = [client.post(request, time.monotonic() + 20).body for _ in range(2)]
        thread.join()
    assert bodies == [b"hi", b"hi"]


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    with odd(Odd(body={"n": 1}), Odd(body={"n": 2})) as served:
        client = HttpClient({})
        request = HttpRequest(served.url, {}, b"{}")
        bodies = [client.post(request, time.monotonic() + 20).body for _ in range(2)]
    assert bodies == [b'{"n": 1}', b'{"n": 2}']


def test_a_reply_without_a_length_is_not_whole_at_the_deadline() -> None:
    over = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def begin() -> None:
            line, _ = server.accept()
            with closing(line):
                line.recv(65536)
                line.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
                over.wait()

        thread = threading.Thread(target=begin)
        thread.start()
        with pytest.raises(NoReply) as caught:
            send(f"http://127.0.0.1:{server.getsockname()[1]}/", within_s=0.2)
        over.set()
        thread.join()
    assert caught.value.trouble == "timed-out"


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",),
        (b"nonsense\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",),
    ],
    ids=["nothing", "half", "half a chunk", "no http", "headers without end"],
)
def test_a_reply_that_is_not_whole_is_none(sent: tuple[bytes, ...]) -> None:
    with listening(*sent) as url:
        failure = refused(url)
    assert failure.trouble == "broken"
    assert failure.is_temporary


def test_a_huge_reply_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_REPLY_BYTES", 1024 * 1024)
    with odd(Odd(body=b"x" * (4 * 1024 * 1024))) as served:
        failure = refused(served.url)
    assert failure.trouble == "too-much"
    assert failure.message.endswith("the reply is longer than 1 MiB")


def test_a_server_without_tls_is_reported() -> None:
    with odd(Odd()) as served:
        failure = refused(served.url.replace("http:", "https:"))
    assert failure.trouble == "untrusted"


def test_a_file_of_certificates_that_is_not_there_is_reported() -> None:
    failure = refused("https://127.0.0.1:9/", SSL_CERT_FILE="no-such.pem")
    assert failure.message == "127.0.0.1:9: the file named by SSL_CERT_FILE does not exist"


@pytest.mark.parametrize(
    ("error", "trouble", "message"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "?"),
            "unknown-host",
            "m.example: there is no such host",
        ),
        (socket.gaierror(socket.EAI_AGAIN, "?"), "unreachable", "m.example: its name cannot be"),
        (UnicodeError("idna"), "unknown-host", "m.example: this cannot be a host name"),
    ],
)
def test_a_name_that_leads_nowhere_is_reported(
    monkeypatch: pytest.MonkeyPatch, error: Exception, trouble: str, message: str
) -> None:
    def read_run_state(*_: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", read_run_state)
    failure = refused("http://m.example/v1")
    assert (failure.trouble, failure.message[: len(message)]) == (trouble, message)


@pytest.mark.parametrize("name", ["a" * 64, "ü" * 64])
def test_a_name_that_is_too_long_for_a_host_is_reported(name: str) -> None:
    failure = refused(f"http://{name}.example/v1")
    assert failure.trouble == "unknown-host"
    assert failure.message.endswith("this cannot be a host name")


def test_through_a_proxy_a_plain_request_names_the_whole_url() -> None:
    with odd(Odd(body={"ok": True})) as served:
        proxy = served.url.removesuffix("/v1").replace("//", "//me:pw@")
        reply = send("http://model.example/v1/chat", environ={"http_proxy": proxy})
    assert reply.status == 200
    assert served.paths == ["http://model.example/v1/chat"]
    assert served.headers[0]["Proxy-Authorization"] == "Basic bWU6cHc="


def test_a_proxy_that_refuses_the_tunnel_is_reported() -> None:
    with listening(b"HTTP/1.1 407 Who are you\r\n\r\n") as url:
        failure = refused("https://model.example/v1", https_proxy=url)
    assert "407 who are you" in failure.message
