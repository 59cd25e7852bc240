"""One POST, against servers that answer, lie, hang and go away."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn, failure_of
from agentkit.endpoints import Odd, Served, odd, scripted
from agentkit.llm.test_model import told
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import raising

from uwf_git.agentkit.llm import http_client
from uwf_git.agentkit.llm.endpoint import Endpoint, extract, find_extractor, read_endpoint
from uwf_git.agentkit.llm.http_client import (
    HttpClient,
    HttpReply,
    NoReply,
    find_proxy,
    find_quota_wait_s,
    find_wait_s,
    post_with_retries,
    shut_after,
    split_url,
)
from uwf_git.engine.turn_context import build_extract_context

HTTP = Path(__file__).parent / "made_up" / "http.json"


def send(url: str, *, within_s: float = 20, environ: dict[str, str] | None = None) -> HttpReply:
    headers = {"Content-Type": "application/json"}
    return HttpClient(url, environ or {}).post(headers, b'{"a": 1}', time.monotonic() + within_s)


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
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            # A test that failed before it came must not leave the thread waiting for it.
            with suppress(OSError):
                socket.create_connection(server.getsockname()).close()
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


def test_what_a_connection_says_until_it_is_shut_is_not_whole() -> None:
    is_shut = threading.Event()
    with pytest.raises(TimeoutError), shut_after(0, is_shut.set):
        assert is_shut.wait(60)


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
    monkeypatch.setattr(socket, "getaddrinfo", raising(error))
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
    assert not failure.is_temporary


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_proxy_that_is_not_there_is_named(host: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        proxy = f"{host}:{server.getsockname()[1]}"
    failure = refused("http://model.example/v1", HTTP_PROXY=f"http://{proxy}")
    assert failure.message.startswith(f"model.example: its proxy {proxy}: ")
    assert failure.trouble == "unreachable"
    assert failure.hint == "see http_proxy, all_proxy and no_proxy, also in capitals"


# Asking again, and when not to.


class Watched:
    """One post with retries: its waits, and its messages."""

    def __init__(self, url: str, *, within_s: float = 600) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []
        self._within_s = within_s
        self._client = HttpClient(url, {})

    def post(self) -> HttpReply:
        return post_with_retries(
            self._client,
            {},
            b"{}",
            deadline=time.monotonic() + self._within_s,
            say=self.said.append,
            sleep=self.waits.append,
        )


def host(served: Served) -> str:
    return served.url.removeprefix("http://").removesuffix("/v1")


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422])
def test_what_will_not_change_is_not_asked_again(status: int) -> None:
    with odd(Odd(status)) as served:
        watched = Watched(served.url)
        assert watched.post().status == status
    assert len(served.asked) == 1
    assert not watched.said


def test_waits_double_and_come_to_an_end() -> None:
    with odd(Odd(500)) as served:
        watched = Watched(served.url)
        assert watched.post().status == 500
    assert len(served.asked) == 5
    for wait_s, expected in zip(watched.waits, (0.5, 1, 2, 4), strict=True):
        assert 0.75 * expected <= wait_s <= 1.25 * expected


def test_the_reset_of_a_quota_counts_where_the_quota_is_the_matter() -> None:
    headers = {"X-RateLimit-Reset-Requests": "9s"}
    with odd(Odd(429, headers=headers), Odd(500, headers=headers), Odd()) as served:
        watched = Watched(served.url)
        watched.post()
    assert watched.waits[0] == 9.0
    assert watched.waits[1] < 2


def test_nothing_waits_beyond_the_deadline() -> None:
    with odd(Odd(429, headers={"Retry-After": "30"})) as served:
        watched = Watched(served.url, within_s=10)
        assert watched.post().status == 429
    assert watched.waits == []


def test_a_refused_connection_is_tried_again_and_then_reported() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    watched = Watched(f"http://127.0.0.1:{port}/v1")
    with pytest.raises(NoReply, match="connection refused"):
        watched.post()
    assert len(watched.waits) == 4


NOW_S = 1_760_000_000.0


NAMES = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-reset",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_whatever_the_headers_hold_a_wait_is_no_less_than_nothing(headers: dict[str, str]) -> None:
    for find in (find_wait_s, find_quota_wait_s):
        wait_s = find(headers, now_s=NOW_S)
        assert wait_s is None or wait_s >= 0


# Endpoints, from settings and the environment.

MODEL = {"model": "m"}


def read(settings: dict[str, str], **environ: str) -> Endpoint:
    return read_endpoint(settings, environ, section="uwf.llm")


def test_the_key_is_not_shown() -> None:
    assert "sk-geheim" not in repr(read(MODEL, OPENAI_API_KEY="sk-geheim"))


@pytest.mark.parametrize("key", ["sk-geheim\nX: y", "sk-geheim…", "sk-geheim\0"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    failure = failure_of(lambda: read(MODEL, OPENAI_API_KEY=key))
    assert failure.kind == "auth"
    assert "geheim" not in failure.message + str(failure.hint)


def test_without_a_model_the_hint_says_how_to_name_one() -> None:
    failure = failure_of(lambda: read({}))
    assert failure.kind == "usage"
    assert failure.hint == "name one: git config --global uwf.llm.model MODEL"


def test_headers_urls_and_settings(golden: Callable[[str, str], None]) -> None:
    def tell_endpoint(settings: dict[str, str], environ: dict[str, str]) -> list[object]:
        found = read(settings, **environ)
        return [found.url, found.key, found.max_tokens, found.temperature]

    answers = {
        "find_wait_s": lambda headers: find_wait_s(headers, now_s=NOW_S),
        "find_quota_wait_s": lambda headers: find_quota_wait_s(headers, now_s=NOW_S),
        "split_url": split_url,
        "find_proxy": find_proxy,
        "read_endpoint": tell_endpoint,
    }
    golden("llm/http.txt", tell_cases(HTTP, answers))


# The settings of the extractor: whether a model is configured, and which agents may use it.


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
TEXT = "I looked at it. I approve of this change."


def configure(url: str) -> None:
    with Path(os.environ["GIT_CONFIG_GLOBAL"]).open("a") as file:
        file.write(f'[uwf "extractor"]\n\tmodel = m\n\turl = {url}\n\tkeyEnv = MY_KEY\n')


def test_no_model_is_called_unless_one_is_configured() -> None:
    environ = {**os.environ, "UWF_MODEL": "m"}
    assert find_extractor(environ, "reviewer") is None
    failure = failure_of(lambda: extract(TEXT, SCHEMA, environ=environ))
    assert failure.hint == "name its model: git config --global uwf.extractor.model MODEL"


def test_the_configured_model_reads_what_an_agent_wrote(context: MakeContext) -> None:
    turn = told({"approved": True, "severity": None, "comments": None}, {"approved": "I approve"})
    with scripted(turn) as served:
        configure(served.url)
        extractor = find_extractor({**os.environ, "MY_KEY": "k"}, "reviewer")
        assert extractor is not None
        answer = extractor(build_extract_context(context(), TEXT))
    assert answer.structured == {"approved": True}
    assert answer.usage["turns"] == 1


def test_an_agent_may_extract_something_before_it_runs() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    with scripted(told({"path": "/srv/shop"}, {"path": "/srv/shop"})) as served:
        configure(served.url)
        found = extract("It is in /srv/shop.", schema, prompt="Where?", environ=os.environ)
    assert found == {"path": "/srv/shop"}


def test_lookup_without_an_extractor_loads_no_http(turn: Turn) -> None:
    ran = turn.python(
        "-c",
        "import os, sys; from uwf_git.agentkit.llm.endpoint import find_extractor; "
        "print(find_extractor(os.environ, 'counter'), 'http.client' in sys.modules)",
    )
    assert ran.out == "None False\n"
