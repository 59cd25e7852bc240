import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.commands.mcp.server import LEGACY, McpServer, McpTool, Tasks
from uwf_git.errors import Refused

VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN = {"_meta": {VERSION: "2026-07-28"}}


def greet(arguments: Mapping[str, Any]) -> str:
    match arguments.get("name"):
        case None:
            raise Refused("nobody was named", hint="give a name")
        case "bug":
            raise KeyError("bug")
        case "disk":
            raise OSError(28, "No space left on device", "/srv/x")
        case name:
            return f"Hello, {name}!"


SERVER = McpServer(
    "1.2",
    "Be polite.",
    [
        McpTool("greet", "Greets.", {"type": "object"}, greet),
        McpTool("write", "", {}, greet, is_read_only=False),
    ],
)


def ask(method: str, params: Any = None, number: Any = 1) -> Any:
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    if params is not None:
        message["params"] = params
    return SERVER.answer(message)


def result(method: str, params: Any = None) -> Any:
    told = ask(method, params)
    assert told.keys() == {"jsonrpc", "id", "result"}, told
    return told["result"]


def call(**arguments: Any) -> Any:
    return result("tools/call", {"name": "greet", "arguments": arguments})


@pytest.mark.parametrize("version", LEGACY)
def test_handshake_agrees_on_the_client_s_version(version: str) -> None:
    assert result("initialize", {"protocolVersion": version, "capabilities": {}}) == {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "uwf", "title": "uwf threads", "version": "1.2"},
        "instructions": "Be polite.",
    }


def test_newer_era_needs_no_handshake() -> None:
    told = result("server/discover", MODERN)

    assert told["resultType"] == "complete"
    assert told["supportedVersions"] == ["2026-07-28"]
    assert told["capabilities"] == {"tools": {}}
    assert told["serverInfo"] == told["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert {"ttlMs", "cacheScope", "instructions"} <= told.keys()


def test_version_that_is_not_spoken_is_refused_with_those_that_are() -> None:
    error = ask("tools/list", {"_meta": {VERSION: "2027-01-01"}})["error"]

    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


def test_older_version_in_a_request_is_the_handshake_s() -> None:
    assert result("ping", {"_meta": {VERSION: "2025-06-18"}}) == {}


def test_refusal_of_a_tool_is_a_result_that_the_model_reads() -> None:
    assert call() == {
        "content": [{"type": "text", "text": "nobody was named\ngive a name"}],
        "isError": True,
    }
    assert call(name="disk")["content"][0]["text"] == "/srv/x: No space left on device"


def test_bug_in_a_tool_does_not_end_the_server() -> None:
    told = ask("tools/call", {"name": "greet", "arguments": {"name": "bug"}})

    assert told["error"] == {"code": -32603, "message": "greet failed: KeyError: 'bug'"}


@pytest.mark.parametrize(
    "params", [{"name": "nope"}, {}, {"name": ["greet"]}, {"name": "greet", "arguments": [1]}, []]
)
def test_call_of_nothing_is_refused(params: Any) -> None:
    assert ask("tools/call", params)["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "nope", "", "initialized"])
def test_unknown_method_is_refused(method: str) -> None:
    assert ask(method)["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"7", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    ],
)
def test_line_that_is_no_request_is_refused(line: bytes, code: int) -> None:
    reply = SERVER.answer_line(line)

    assert reply is not None
    assert reply.endswith(b"\n")
    assert json.loads(reply)["error"]["code"] == code


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "nope"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
def test_notifications_get_no_answer(message: dict[str, Any]) -> None:
    assert SERVER.answer_line(json.dumps(message).encode()) is None


def test_half_characters_can_be_answered() -> None:
    reply = SERVER.answer_line(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":'
        b'{"name":"\\ud800"}}}'
    )

    assert reply is not None
    assert b"\\ud800" in reply


KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "_meta", "name", "arguments", VERSION])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["2.0", "tools/call", "greet"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(KEYS, VALUES))
def test_every_request_has_one_answer(message: dict[str, Any]) -> None:
    told = SERVER.answer({"jsonrpc": "2.0", "id": 1, "method": "ping", **message})

    assert told is None or ("result" in told) != ("error" in told)


def test_bug_of_a_task_does_not_end_the_server() -> None:
    def fail(task: str) -> Any:
        raise KeyError(task)

    tasks = Tasks(fail, lambda *_: None, fail)
    declared: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**MODERN["_meta"], "io.modelcontextprotocol/clientCapabilities": declared}

    told = SERVER._replace(tasks=tasks).answer(
        {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "x", "_meta": meta}}
    )

    assert told is not None
    assert told["error"] == {"code": -32603, "message": "tasks/get failed: KeyError: 'x'"}


def test_building_the_server_does_not_import_the_store() -> None:
    program = "import sys, uwf_git.commands.mcp.server; print(sorted({'dulwich'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert ran.stdout == b"[]\n"
