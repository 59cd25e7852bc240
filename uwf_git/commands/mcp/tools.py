"""The list of MCP tools: names, descriptions and arguments.

calls.py, which imports the store, is imported at the first call: a client waits for the list first.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.mcp.place import McpPlace
from uwf_git.commands.mcp.server import McpServer, McpTool

_VERSION = "1"
"""The version of the tools, not of the package."""

_INSTRUCTIONS = (
    "You are playing a role in a thread, a chain of steps taken by several agents. read_role has "
    "your task, read_thread and read_step the steps before yours. submit_result submits your "
    "result, and lists its problems while you can still correct them."
)

_INTEGER = {"type": "integer"}
_TEXT = {"type": "string"}
_THREAD_ID = _TEXT | {"description": "Another thread than your own: its id or a unique prefix"}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema | {"additionalProperties": False}


class _Declared(NamedTuple):
    """A tool that is not bound to an agent yet."""

    name: str
    """Also the name of its function in calls.py."""

    description: str
    parameters: dict[str, Any]
    is_read_only: bool = True


_TOOLS = (
    _Declared(
        "read_thread",
        "Read the steps of a thread as Markdown. Without thread_id: your own thread.",
        _object(
            thread_id=_THREAD_ID,
            last=_INTEGER
            | {"minimum": 1, "description": "The number of newest steps; 200 if not given"},
        ),
    ),
    _Declared(
        "read_step",
        "Read one step of a thread whole, as JSON: its role, its fields (meta), its text "
        "(content), its agent. Without thread_id: of your own.",
        _object(
            "index",
            thread_id=_THREAD_ID,
            index=_INTEGER | {"description": "1 is the first step, -1 the newest"},
        ),
    ),
    _Declared(
        "read_role",
        "Read your task as JSON: the task, your role, the JSON Schema of the fields to submit, "
        "and why an earlier attempt failed.",
        _object(),
    ),
    _Declared(
        "submit_result",
        "Submit your result when your work is done: meta has the fields of your role's JSON "
        "Schema (see read_role), content the text for the next readers. If the answer lists "
        "problems, correct them and call this again. The last result counts. End your turn "
        "after that.",
        _object(
            "meta",
            meta={"type": "object", "description": "The fields of the schema"},
            content=_TEXT | {"description": "Your text, in Markdown"},
        ),
        is_read_only=False,
    ),
)


def build_server(place: McpPlace) -> McpServer:
    """Build the server for one agent."""

    def bind(name: str) -> Callable[[Mapping[str, Any]], str]:
        def call(arguments: Mapping[str, Any]) -> str:
            from uwf_git.commands.mcp import calls as mcp_calls  # noqa: PLC0415 (imports the store: 60 ms)

            answered: str = getattr(mcp_calls, name)(place, arguments)
            return answered

        return call

    tools = [
        McpTool(each.name, each.description, each.parameters, bind(each.name), each.is_read_only)
        for each in _TOOLS
    ]
    return McpServer(_VERSION, _INSTRUCTIONS, tools)
