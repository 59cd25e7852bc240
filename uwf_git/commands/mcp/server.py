"""`uwf mcp`: one message of the Model Context Protocol in, its answer out."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.errors import UwfError

if TYPE_CHECKING:
    from uwf_git.store.store import Store

# The agent that `uwf mcp` works for.


class McpPlace(NamedTuple):
    open_store: "Callable[[], Store]"
    thread: str | None = None
    role: str | None = None
    """None: the role whose turn it is."""

    head: str | None = None
    """The head when the agent was started; None: any."""

    step_dir: str | None = None
    """The directory for a submitted result; None: none can be submitted."""


# MCP server: one message of the Model Context Protocol in, its answer out.
#
# Two eras of the protocol: `server/discover` with the version in each request's ``_meta``
# (2026-07-28), and the handshake `initialize` (2024-11-05 to 2025-11-25). Each request gets one
# answer, a notification none. A tool's error is a result that the model reads and can act on.
# Source: modelcontextprotocol.io, specifications 2024-11-05 to 2026-07-28; JSON-RPC 2.0.

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

_META = "io.modelcontextprotocol/"
_TASKS = f"{_META}tasks"

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603
_HEADER_MISMATCH = -32020
_MISSING_CAPABILITY = -32021
_UNSUPPORTED_VERSION = -32022

# The tools do not change while the server runs.
_FRESH_MS = 3_600_000
_CACHED = {
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}

# Over HTTP; every other answer is 200.
_STATUS = {
    _METHOD_NOT_FOUND: 404,
    **dict.fromkeys(
        (_INVALID_REQUEST, _HEADER_MISMATCH, _MISSING_CAPABILITY, _UNSUPPORTED_VERSION), 400
    ),
}
# The newer era has none of these.
_ENDED = {"initialize", "ping"}
_NAMED_BY = {
    "tools/call": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}

Reply = dict[str, Any]


class NewTask(NamedTuple):
    """What a tool has started that goes on without it."""

    task: str
    text: str
    """What a client without tasks is told."""


class McpTool(NamedTuple):
    """A tool: its entry in the list, and its function."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments."""

    call: Callable[..., "str | NewTask"]
    """Returns the text that the model reads, or raises a UwfError."""

    is_read_only: bool = True
    hints: Mapping[str, bool] = MappingProxyType({})
    """What else a client is told of its effects."""


class Tasks(NamedTuple):
    """Tasks by their ids; each function raises a UwfError for an unknown one."""

    get: Callable[[str], Reply]
    update: Callable[[str, Mapping[str, Any], str], None]
    """Takes the answers of the user of a client, by their keys, and the client's name."""

    cancel: Callable[[str], None]


class Resources(NamedTuple):
    templates: Sequence[Reply]
    read: Callable[[str], tuple[str, str] | None]
    """Returns the type and the text, or None."""


class _Refused(Exception):
    """The request gets an error as its answer."""

    def __init__(self, code: int, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.error: Reply = {"code": code, "message": message}
        if facts:
            self.error["data"] = facts


class McpServer(NamedTuple):
    """A server with some tools; a tuple, as importing dataclasses takes a fifth of the start."""

    version: str
    instructions: str
    tools: Sequence[McpTool]
    tasks: Tasks | None = None
    resources: Resources | None = None

    def answer_line(self, line: bytes) -> bytes | None:
        _, reply = self.answer_body(line)
        # ASCII escapes: lone surrogates have no other form.
        return None if reply is None else json.dumps(reply, default=str).encode("ascii") + b"\n"

    def answer_body(
        self, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Reply | None]:
        """Answer a line, or the body of a POST with its *headers*: status, answer.

        A request of the newer era repeats version, method and name in headers (lower-case names); a
        contradiction is refused.
        """
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return 400, _error(None, _PARSE_ERROR, "this is not JSON")
        if headers is not None and isinstance(message, dict):
            problem = _find_mismatch(message, headers)
            if problem is not None:
                code, told = problem
                return _STATUS.get(code, 400), _error(message.get("id"), code, told)
        reply = self.answer(message)
        if reply is None:
            return 202, None
        return _STATUS.get(reply.get("error", {}).get("code"), 200), reply

    def answer(self, message: Any) -> Reply | None:
        """Answer one message; None for a notification or an answer."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            told = "this is not one JSON-RPC 2.0 message; batches are not supported"
            return _error(None, _INVALID_REQUEST, told)
        number, method = message.get("id"), message.get("method")
        if "method" not in message and ("result" in message or "error" in message):
            return None
        if not isinstance(method, str):
            return _error(number, _INVALID_REQUEST, "the method is not a string")
        if "id" not in message:
            return None
        if not isinstance(number, str | int) or isinstance(number, bool):
            return _error(None, _INVALID_REQUEST, "the id is neither a string nor a whole number")
        params = message.get("params", {})
        try:
            return {"jsonrpc": "2.0", "id": number, "result": self._answer(method, params)}
        except _Refused as refused:
            error = refused.error
        except UwfError as refused:
            error = {"code": _INTERNAL_ERROR, "message": refused.message}
        except Exception as bug:  # noqa: BLE001 (a server that ends takes all tools from its client)
            message = f"{params.get('name', method)} failed: {type(bug).__name__}: {bug}"
            error = {"code": _INTERNAL_ERROR, "message": message[:500]}
        return {"jsonrpc": "2.0", "id": number, "error": error}

    def _answer(self, method: str, params: Any) -> Reply:
        if not isinstance(params, dict):
            raise _Refused(_INVALID_PARAMS, "the params are not an object")
        is_modern = _check_version(params)
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                version = wanted if wanted in LEGACY else LEGACY[0]
                return {"protocolVersion": version, **self._introduce()}
            case "ping":
                result: Reply = {}
            case "server/discover":
                # This method exists only in the newer era, with or without a version.
                is_modern, result = True, {"supportedVersions": [*MODERN], **self._introduce()}
                result["_meta"] = {f"{_META}serverInfo": result["serverInfo"]}
                if self.tasks is not None:
                    result["capabilities"]["extensions"] = {_TASKS: {}}
            case "tools/list":
                result = {"tools": [_view_tool(tool) for tool in self.tools]}
            case "tools/call":
                result = self._call(params)
            case _:
                result = self._answer_more(method, params)
        if is_modern and method in _CACHED:
            # What a thread has said changes while it runs.
            fresh_ms = 0 if method == "resources/read" else _FRESH_MS
            result |= {"ttlMs": fresh_ms, "cacheScope": "private"}
        return {"resultType": "complete", **result} if is_modern else result

    def _answer_more(self, method: str, params: Mapping[str, Any]) -> Reply:
        """Answer what only a server with tasks and resources does."""
        kind, _, verb = method.partition("/")
        if self.tasks is not None and kind == "tasks" and verb in {"get", "update", "cancel"}:
            return _answer_task(self.tasks, verb, params)
        if self.resources is not None and method == "resources/list":
            return {"resources": []}
        if self.resources is not None and method == "resources/templates/list":
            return {"resourceTemplates": list(self.resources.templates)}
        if self.resources is not None and method == "resources/read":
            uri = params.get("uri")
            found = self.resources.read(uri) if isinstance(uri, str) else None
            if found is None:
                raise _Refused(_INVALID_PARAMS, "there is no such resource", uri=uri)
            return {"contents": [{"uri": uri, "mimeType": found[0], "text": found[1]}]}
        raise _Refused(_METHOD_NOT_FOUND, f"there is no method {method[:100]}")

    def _introduce(self) -> Reply:
        return {
            "capabilities": {"tools": {}} | ({} if self.resources is None else {"resources": {}}),
            "serverInfo": {"name": "uwf", "title": "uwf threads", "version": self.version},
            "instructions": self.instructions,
        }

    def _call(self, params: Mapping[str, Any]) -> Reply:
        name, arguments = params.get("name"), params.get("arguments")
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            raise _Refused(_INVALID_PARAMS, f"there is no tool {name!r:.100}; there are {names}")
        if arguments is not None and not isinstance(arguments, dict):
            raise _Refused(_INVALID_PARAMS, "the arguments are not an object")
        try:
            answered = tool.call(arguments or {})
            if isinstance(answered, str):
                return _say(answered)
            if self.tasks is not None and _has_tasks(params):
                return _as_handle(self.tasks.get(answered.task))
            return _say(answered.text)
        except UwfError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            return _say(f"{error.message}{hint}", is_error=True)
        except OSError as error:
            return _say(f"{error.filename or name}: {error.strerror or error}", is_error=True)


def read_call(line: bytes) -> tuple[str | int, bool]:
    """Return the id of a request, "" if there is none, and whether *line* only cancels it."""
    try:
        message = json.loads(line)
        is_cancelled = message.get("method") == "notifications/cancelled"
        call = message["params"]["requestId"] if is_cancelled else message["id"]
    except (ValueError, RecursionError, AttributeError, TypeError, LookupError):
        return "", False
    return (call, is_cancelled) if type(call) in {str, int} else ("", False)


def _find_mismatch(
    message: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[int, str] | None:
    """Return the code and the text of what is wrong with a request over HTTP; None if nothing."""
    method, params = str(message.get("method")), message.get("params")
    params = params if isinstance(params, dict) else {}
    version = _read_meta(params, "protocolVersion")
    told = headers.get("mcp-protocol-version")
    if "id" not in message or (version is None and (told is None or told in LEGACY)):
        # A notification, or the older era.
        return None
    if method in _ENDED:
        return _METHOD_NOT_FOUND, f"there is no method {method}"
    capabilities = _read_meta(params, "clientCapabilities")
    if not isinstance(version, str) or not isinstance(capabilities, dict):
        return _INVALID_PARAMS, "_meta lacks the version or the client's capabilities"
    wanted: Reply = {"mcp-protocol-version": version, "mcp-method": method}
    if method in _NAMED_BY:
        wanted["mcp-name"] = params.get(_NAMED_BY[method])
    for header, value in wanted.items():
        if _decode_header(headers.get(header)) != value:
            return _HEADER_MISMATCH, f"the header {header} does not say what the body says"
    return None


def _decode_header(value: str | None) -> str | None:
    """Return what a header says; what is not ASCII stands in base64."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None


def _check_version(params: Mapping[str, Any]) -> bool:
    version = _read_meta(params, "protocolVersion")
    # A client may repeat the version of the handshake.
    if version is None or version in LEGACY:
        return False
    if version not in MODERN:
        message = f"protocol version {version!r:.50} is not supported"
        raise _Refused(_UNSUPPORTED_VERSION, message, supported=list(MODERN), requested=version)
    return True


def _has_tasks(params: Mapping[str, Any]) -> bool:
    """Check whether the client of a request knows tasks: each request says so anew."""
    capabilities = _read_meta(params, "clientCapabilities")
    declared = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return _check_version(params) and isinstance(declared, dict) and _TASKS in declared


def _read_meta(params: Mapping[str, Any], name: str) -> Any:
    meta = params.get("_meta")
    return meta.get(f"{_META}{name}") if isinstance(meta, dict) else None


def _as_handle(task: Reply) -> Reply:
    """Return a task as the answer of the call that made it: what it is has to be asked for."""
    facts = {name: task[name] for name in task if name not in {"result", "inputRequests"}}
    return {**facts, "resultType": "task"}


def _answer_task(tasks: Tasks, verb: str, params: Mapping[str, Any]) -> Reply:
    if not _has_tasks(params):
        needed: Reply = {"extensions": {_TASKS: {}}}
        message = f"tasks/{verb} is for clients that declare {_TASKS}"
        raise _Refused(_MISSING_CAPABILITY, message, requiredCapabilities=needed)
    task, responses = params.get("taskId"), params.get("inputResponses", {})
    if not isinstance(task, str) or not isinstance(responses, dict):
        raise _Refused(_INVALID_PARAMS, "a taskId is a text, inputResponses are an object")
    try:
        if verb == "get":
            return tasks.get(task)
        if verb == "cancel":
            tasks.cancel(task)
        else:
            client = _read_meta(params, "clientInfo")
            client = client if isinstance(client, dict) else {}
            tasks.update(task, responses, f"{client.get('name', '?')} {client.get('version', '')}")
    except UwfError as error:
        raise _Refused(_INVALID_PARAMS, error.message) from error
    return {}


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
            **tool.hints,
        },
    }


def _say(text: str, *, is_error: bool = False) -> Reply:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _error(number: Any, code: int, message: str) -> Reply:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


# The list of MCP tools: names, descriptions and arguments.
#
# calls.py, which imports the store, is imported at the first call: a client waits for the list
# first.

VERSION = "1"
"""The version of the tools, not of the package."""

_INSTRUCTIONS = (
    "You are playing a role in a thread, a chain of steps taken by several agents. read_role has "
    "your task, read_thread and read_step the steps before yours. submit_result submits your "
    "result, and lists its problems while you can still correct them."
)

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
LAST = INTEGER | {
    "minimum": 1,
    "description": "How many of the newest events (steps, attempts, pauses and others); 200 if "
    "not given",
}
_THREAD_ID = TEXT | {"description": "Another thread than your own: its id or a unique prefix"}


def describe_object(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema | {"additionalProperties": False}


def _call(name: str, place: McpPlace, arguments: Mapping[str, Any]) -> str:
    """Call the function *name* of calls.py, which takes its place first."""
    from uwf_git.commands.mcp import calls as mcp_calls  # noqa: PLC0415 (imports the store: 60 ms)

    answered: str = getattr(mcp_calls, name)(place, arguments)
    return answered


_TOOLS = (
    McpTool(
        "read_thread",
        "Read the steps of a thread as Markdown. Without thread_id: your own thread.",
        describe_object(thread_id=_THREAD_ID, last=LAST),
        partial(_call, "read_thread"),
    ),
    McpTool(
        "read_step",
        "Read one step of a thread whole, as JSON: its role, its fields (meta), its text "
        "(content), its agent. Without thread_id: of your own.",
        describe_object(
            "index",
            thread_id=_THREAD_ID,
            index=INTEGER | {"description": "1 is the first step, -1 the newest"},
        ),
        partial(_call, "read_step"),
    ),
    McpTool(
        "read_role",
        "Read your task as JSON: the task, your role, the JSON Schema of the fields to submit, "
        "and why an earlier attempt failed.",
        describe_object(),
        partial(_call, "read_role"),
    ),
    McpTool(
        "submit_result",
        "Submit your result when your work is done: meta has the fields of your role's JSON "
        "Schema (see read_role), content the text for the next readers. If the answer lists "
        "problems, correct them and call this again. The last result counts. End your turn "
        "after that.",
        describe_object(
            "meta",
            meta={"type": "object", "description": "The fields of the schema"},
            content=TEXT | {"description": "Your text, in Markdown"},
        ),
        partial(_call, "submit_result"),
        is_read_only=False,
    ),
)


def build_server(place: McpPlace) -> McpServer:
    tools = [tool._replace(call=partial(tool.call, place)) for tool in _TOOLS]
    return McpServer(VERSION, _INSTRUCTIONS, tools)
