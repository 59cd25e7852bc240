"""Every route of the server, and everything that is not its own page with its token."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from commands.world import World
from web.ui.attacks import ATTACKS, DATA
from web.ui.page_server import PageServer, Reply

from uwf_git.web.ui.answers import HEADERS, MOST_BODY_BYTES, OPEN_PATHS
from uwf_git.web.ui.application import CHAT, ROUTES


def _fill(path: str, thread: str = "01J00000000000000000000001") -> str:
    return path.format(thread=thread, commit="0" * 40, name="demo")


def _check(reply: Reply, status: int) -> None:
    assert reply.status == status
    assert set(reply.json["error"]) >= {"code", "message", "hint"}
    assert "Traceback" not in reply.body.decode()
    for name, value in HEADERS:
        assert reply.headers[name.decode()] == value.decode()
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_route_refuses(server: PageServer, attack: str) -> None:
    headers, status = ATTACKS[attack]

    for method, path in DATA:
        _check(server.ask(method, _fill(path), headers=headers), status)


def test_every_route_refuses_two_hosts(server: PageServer) -> None:
    for method, path in DATA:
        head = f"{method} {_fill(path)} HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n"
        _check(server.send(head.encode()), 421)


def test_what_is_no_route_needs_the_token_as_well(server: PageServer) -> None:
    for path in (
        "/api",
        "/api/x",
        "/index.html",
        "/favicon.ico",
        "/modules/../x.js",
        "//",
        "/app.js/",
    ):
        _check(server.ask("GET", path, headers={"Authorization": ""}), 401)
        _check(server.ask("GET", path), 404)


def test_every_route_refuses_other_methods(server: PageServer) -> None:
    known = set(DATA)
    for _, path in DATA:
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            if (method, path) not in known:
                reply = server.ask(method, _fill(path))
                assert reply.status == 405, (method, path)
                assert "access-control-allow-origin" not in reply.headers


def _posts() -> Iterator[str]:
    yield from (_fill(path) for method, path in DATA if method == "POST")


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"]
)
def test_every_post_refuses_another_type(server: PageServer, kind: str) -> None:
    for path in _posts():
        _check(server.ask("POST", path, headers={"Content-Type": kind}), 415)


def test_every_post_refuses_a_huge_body_before_it_comes(server: PageServer) -> None:
    for path in _posts():
        _check(server.ask("POST", path, headers={"Content-Length": str(MOST_BODY_BYTES + 1)}), 413)


def test_every_post_counts_a_chunked_body(server: PageServer) -> None:
    for path in _posts():
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        piece = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        pieces = piece * (MOST_BODY_BYTES // 0x4000)
        _check(server.send(head.encode() + pieces + b"1\r\n \r\n"), 413)


def test_every_post_refuses_what_is_no_object(server: PageServer) -> None:
    for path in _posts():
        # A chat is told in JSON-RPC: test_chat.py.
        if path != CHAT:
            reply = server.ask("POST", path, [])
            _check(reply, 400)
            assert reply.code == "bad-body"


def test_every_post_refuses_unknown_fields(server: PageServer, shared_world: World) -> None:
    thread = shared_world.begun()
    for method, path in DATA:
        # A chat is told in JSON-RPC what is wrong: test_chat.py.
        if method == "POST" and path != CHAT:
            reply = server.ask("POST", _fill(path, thread), {"trust": True})
            _check(reply, 400)
            assert reply.json["error"]["details"] == [
                {"pointer": "/trust", "message": "there is no such field"}
            ]


def test_every_route_takes_its_own_names_in_the_query_only(server: PageServer) -> None:
    for route in ROUTES:
        _check(server.ask(route.method, f"{_fill(route.path)}?token={server.token}"), 400)


def test_own_page_is_answered(server: PageServer) -> None:
    port = server.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "127.0.0.1:1"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert server.ask("GET", "/api/about", headers=headers).status == 200


def test_files_of_the_page_need_no_token_and_hold_no_data(server: PageServer) -> None:
    for path in OPEN_PATHS:
        reply = server.ask("GET", path, headers={"Authorization": "", "Sec-Fetch-Site": "none"})
        assert reply.status in {200, 404}
        assert server.token.encode() not in reply.body
        assert server.store.encode() not in reply.body
        _check(server.ask("GET", path, headers={"Host": "evil.example"}), 421)
        _check(server.ask("GET", path, headers={"Sec-Fetch-Site": "cross-site"}), 403)
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for kind, status in (("document", 200), ("iframe", 403), ("script", 403)):
        headers = {"Authorization": "", "Sec-Fetch-Dest": kind, **opened}
        assert server.ask("GET", "/", headers=headers).status == status
        assert server.ask("GET", "/app.js", headers=headers).status == 403
    assert (
        server.ask("GET", "/", headers={"Authorization": ""})
        .headers["content-type"]
        .startswith("text/html")
    )


def test_what_is_no_http_is_refused(server: PageServer) -> None:
    _check(server.send(b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400)
    _check(server.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 70_000), 400)


def test_two_hundred_connections_hold_nobody_up(server: PageServer) -> None:
    with ExitStack() as stack:
        for each in [stack.enter_context(server.connect()) for _ in range(200)]:
            each.sendall(b"POST /api/threads HTTP/1.1\r\nHost: 127.0")

        assert server.ask("GET", "/api/about").status == 200

    assert server.ask("GET", "/api/threads").status == 200


def test_slow_clients_are_let_go(server: PageServer) -> None:
    begun = b"GET /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    token = f"Authorization: Bearer {server.token}\r\n".encode()
    post = b"POST /api/drafts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with server.connect() as silent, server.connect() as half, server.connect() as again:
        half.sendall(begun)
        # A whole request, then half of one.
        again.sendall(begun + token + b"\r\n")
        assert again.recv(4096).startswith(b"HTTP/1.1 200")
        again.sendall(begun)

        _check(server.send(post + token + b"Content-Length: 20\r\n\r\n{"), 408)
        while again.recv(4096):
            pass
        assert (silent.recv(1), half.recv(1)) == (b"", b"")
