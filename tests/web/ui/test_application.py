"""The guarded application without a server; test_security.py asks the real one."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from commands.world import World
from starlette.types import ASGIApp, Message
from web.ui.attacks import DATA

from uwf_git.cli.app.failure import describe_failure
from uwf_git.commands.inspect.overview import Overview
from uwf_git.web.ui.application import Application
from uwf_git.web.ui.site import Changes, Site

_OWN = {
    "host": "127.0.0.1:8400",
    "authorization": "Bearer right",
    "content-type": "application/json",
}


@pytest.fixture
def application(world: World, site: Site) -> Application:
    changes = Changes(world.store, dict)
    return Application(site, changes, lambda error: describe_failure(error, os.environ))


def ask(
    app: ASGIApp, method: str, path: str, headers: dict[str, str], body: bytes = b"{}"
) -> tuple[int, dict[bytes, bytes], Any]:
    """Return the status, the headers and the document of an answer."""
    told: list[Message] = []
    sent = [{"type": "http.request", "body": body}]

    async def receive() -> Message:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        told.append(message)

    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value]
    scope = {"type": "http", "method": method, "path": path, "headers": pairs, "query_string": b""}
    asyncio.run(_call(app, scope, receive, send))
    content = b"".join(message.get("body", b"") for message in told[1:])
    document = json.loads(content) if content[:1] in {b"{", b"["} else content
    return told[0]["status"], dict(told[0]["headers"]), document


async def _call(app: ASGIApp, scope: dict[str, Any], receive: Any, send: Any) -> None:
    await app(scope, receive, send)


def test_the_table_of_attacks_has_all_that_answers(application: Application) -> None:
    assert application.list_endpoints().keys() == set(DATA)


def test_a_bug_is_told_without_its_trace(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Overview, "read", lambda *_args: 1 // 0)

    status, _, document = ask(application.build("right"), "GET", "/api/threads", _OWN)

    assert status == 500
    assert document["error"]["code"] == "internal"
    assert "Traceback" not in str(document)


def test_files_of_the_page_need_no_token(
    application: Application, golden: Callable[[str, str], None]
) -> None:
    app = application.build("right")

    status, headers, page = ask(app, "GET", "/", {"host": "localhost"})

    assert (status, headers.pop(b"content-length")) == (200, b"%d" % len(page))
    golden(
        "web/headers.txt",
        "".join(f"{each.decode()}: {headers[each].decode()}\n" for each in headers),
    )
    assert b"<!doctype html>" in page
    assert ask(app, "GET", "/picture.css", {"host": "localhost"})[0] == 200
    for path in ("/modules/..", "/modules/none.js", "/app.py", "/index.html"):
        assert ask(app, "GET", path, _OWN)[0] == 404
