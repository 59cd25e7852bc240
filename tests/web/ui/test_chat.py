"""A chat over HTTP: the official client, and requests that say two things."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from chatting import ASKING, answer, ask, call, chat, wait
from commands.world import make_world
from mcp.client.streamable_http import streamable_http_client
from seal import START_MS
from web.ui.page_server import PageServer, run_page

_META = "io.modelcontextprotocol/"
VERSION = "2026-07-28"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Run `uwf ui` with the workflow `asking` and an agent of the user's own."""
    world = make_world(tmp_path_factory.mktemp("chat"), lambda: START_MS, lambda: None)  # type: ignore[arg-type, return-value]  # the server makes the ids
    world.put(ASKING)
    agent = world.program('#!/bin/sh\necho \'{"meta": {"text": "hello"}}\'\n')
    with run_page(world.store.path, world.place, env={"UWF_AGENT": agent}) as page:
        yield page


@asynccontextmanager
async def connect(server: PageServer) -> AsyncIterator[Any]:
    """Connect the official client; each request has the token of the page."""
    url, token = f"http://127.0.0.1:{server.port}/mcp", f"Bearer {server.token}"
    async with (
        httpx2.AsyncClient(headers={"Authorization": token}, timeout=60) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_official_client_runs_a_thread(server: PageServer, mode: str) -> None:
    async def play() -> tuple[str, dict[str, Any]]:
        async with chat(connect(server), mode=mode, tasks=mode == "auto") as client:
            told = await call(client, "start_workflow", workflow="asking", prompt="Hello?")
            thread = told.removeprefix("thread ").split()[0]
            rests = await wait(client, thread)
            if mode == "auto":
                await answer(client, thread, {"ok": True})
                await wait(client, thread)
                rests = await ask(client, "get", thread)
            return thread, rests

    thread, rests = asyncio.run(play())
    assert thread in str(rests)
    assert rests["status"] == ("completed" if mode == "auto" else "waiting")


RIGHT = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "list_threads"}


def post(server: PageServer, method: str, headers: dict[str, str], **params: Any) -> Any:
    meta = {f"{_META}protocolVersion": VERSION, f"{_META}clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}
    reply = server.ask("POST", "/mcp", message, headers=headers)
    return reply.status, reply.json.get("error", {}).get("code")


@pytest.mark.parametrize(
    "changed",
    [
        {"MCP-Protocol-Version": "2025-11-25"},
        {"MCP-Protocol-Version": ""},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": ""},
        {"Mcp-Name": "start_workflow"},
        {"Mcp-Name": ""},
        {"Mcp-Name": "=?base64?!?="},
    ],
)
def test_headers_that_say_something_else_are_refused(
    server: PageServer, changed: dict[str, str]
) -> None:
    assert post(server, "tools/call", RIGHT, name="list_threads") == (200, None)
    assert post(server, "tools/call", RIGHT | changed, name="list_threads") == (400, -32020)


def test_name_that_is_not_ascii_stands_in_base64(server: PageServer) -> None:
    named = RIGHT | {"Mcp-Method": "tasks/get", "Mcp-Name": "=?base64?w6Q=?="}
    assert post(server, "tasks/get", named, taskId="ä") == (400, -32021)


@pytest.mark.parametrize("method", ["initialize", "ping", "tasks/list", "tasks/result"])
def test_newer_era_has_no_such_method(server: PageServer, method: str) -> None:
    assert post(server, method, RIGHT | {"Mcp-Method": method, "Mcp-Name": ""}) == (404, -32601)


def test_body_that_is_no_message_is_told_so(server: PageServer) -> None:
    for body, cut, code in (({"trust": True}, 0, -32600), ([], 0, -32600), ({"a": 1}, 1, -32700)):
        length = {"Content-Length": str(len(json.dumps(body)) - cut)}
        reply = server.ask("POST", "/mcp", body, headers=length)
        assert (reply.status, reply.json["error"]["code"]) == (400, code)


def test_prompt_may_have_a_whole_diff(server: PageServer) -> None:
    given = {"workflow": "none", "prompt": "+ a line\n" * 50_000}
    named = RIGHT | {"Mcp-Name": "start_workflow"}
    assert post(server, "tools/call", named, name="start_workflow", arguments=given) == (200, None)
