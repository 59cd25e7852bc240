"""MCP server: one message of the Model Context Protocol in, its answer out.

Two eras of the protocol: `server/discover` with the version in each request's ``_meta``
(2026-07-28), and the handshake `initialize` (2024-11-05 to 2025-11-25). Each request gets one
answer, a notification none. A tool's error is a result that the model reads and can act on.
Source: modelcontextprotocol.io, specifications 2024-11-05 to 2026-07-28; JSON-RPC 2.0.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.errors import UwfError

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

_META = "io.modelcontextprotocol/"

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603
_UNSUPPORTED_VERSION = -32022

# The tools do not change while the server runs.
_FRESH_MS = 3_600_000

Reply = dict[str, Any]


class McpTool(NamedTuple):
    """A tool: its entry in the list, and its function."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments."""

    call: Callable[[Mapping[str, Any]], str]
    """Returns the text that the model reads, or raises a UwfError."""

    is_read_only: bool = True


class _Refused(Exception):
    """The request gets an error as its answer."""

    def __init__(self, code: int, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.error: Reply = {"code": code, "message": message}
        if facts:
            self.error["data"] = facts


class McpServer(NamedTuple):
    """A server with some tools.

    A tuple: importing dataclasses would take a fifth of the server's start.
    """

    version: str
    instructions: str
    tools: Sequence[McpTool]

    def answer_line(self, line: bytes) -> bytes | None:
        """Answer one line of input; None if it gets no answer."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _write(_error(None, _PARSE_ERROR, "this line is not JSON"))
        if isinstance(message, list):
            return _write(
                _error(None, _INVALID_REQUEST, "batches are not supported; send one message a line")
            )
        reply = self.answer(message)
        return None if reply is None else _write(reply)

    def answer(self, message: Any) -> Reply | None:
        """Answer one message; None for a notification or an answer."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, _INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")
        number, method = message.get("id"), message.get("method")
        if "method" not in message and ("result" in message or "error" in message):
            return None
        if not isinstance(method, str):
            return _error(number, _INVALID_REQUEST, "the method is not a string")
        if "id" not in message:
            return None
        if not isinstance(number, str | int) or isinstance(number, bool):
            return _error(None, _INVALID_REQUEST, "the id is neither a string nor a whole number")
        try:
            result = self._answer(method, message.get("params", {}))
        except _Refused as refused:
            return {"jsonrpc": "2.0", "id": number, "error": refused.error}
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def _answer(self, method: str, params: Any) -> Reply:
        if not isinstance(params, dict):
            raise _Refused(_INVALID_PARAMS, "the params are not an object")
        is_modern = _check_version(params)
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                result: Reply = {}
            case "server/discover":
                # This method exists only in the newer era, with or without a version.
                is_modern, result = True, self._discover()
            case "tools/list":
                result = {"tools": [_view_tool(tool) for tool in self.tools]}
                if is_modern:
                    result |= {"ttlMs": _FRESH_MS, "cacheScope": "private"}
            case "tools/call":
                result = self._call(params)
            case _:
                raise _Refused(_METHOD_NOT_FOUND, f"there is no method {method[:100]}")
        return {"resultType": "complete", **result} if is_modern else result

    def _initialize(self, params: Mapping[str, Any]) -> Reply:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in LEGACY else LEGACY[0],
            "capabilities": {"tools": {}},
            "serverInfo": self._identity(),
            "instructions": self.instructions,
        }

    def _discover(self) -> Reply:
        return {
            "supportedVersions": list(MODERN),
            "capabilities": {"tools": {}},
            "serverInfo": self._identity(),
            "instructions": self.instructions,
            "ttlMs": _FRESH_MS,
            "cacheScope": "private",
            "_meta": {f"{_META}serverInfo": self._identity()},
        }

    def _identity(self) -> Reply:
        return {"name": "uwf", "title": "uwf threads", "version": self.version}

    def _call(self, params: Mapping[str, Any]) -> Reply:
        name, arguments = params.get("name"), params.get("arguments")
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            raise _Refused(_INVALID_PARAMS, f"there is no tool {name!r:.100}; there are {names}")
        if arguments is not None and not isinstance(arguments, dict):
            raise _Refused(_INVALID_PARAMS, "the arguments are not an object")
        try:
            return _say(tool.call(arguments or {}))
        except UwfError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            return _say(f"{error.message}{hint}", is_error=True)
        except OSError as error:
            return _say(f"{error.filename or name}: {error.strerror or error}", is_error=True)
        except Exception as error:
            # The server must not end: the agent would lose all its tools.
            message = f"{name} failed: {type(error).__name__}: {error}"
            raise _Refused(_INTERNAL_ERROR, message[:500]) from error


def _check_version(params: Mapping[str, Any]) -> bool:
    """Check whether a request is of the newer era, by its version."""
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None:
        return False
    if version in LEGACY:
        # A client may repeat the version of the handshake.
        return False
    if version not in MODERN:
        message = f"protocol version {version!r:.50} is not supported"
        raise _Refused(_UNSUPPORTED_VERSION, message, supported=list(MODERN), requested=version)
    return True


def _view_tool(tool: McpTool) -> Reply:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.parameters),
        "annotations": {
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def _say(text: str, *, is_error: bool = False) -> Reply:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _error(number: Any, code: int, message: str) -> Reply:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _write(reply: Reply) -> bytes:
    # ASCII escapes: lone surrogates have no other form.
    return json.dumps(reply, default=str).encode("ascii") + b"\n"
