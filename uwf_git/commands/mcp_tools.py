"""MCP tools: what `uwf mcp` offers an agent: its thread, its role, and handing in a result.

Owns: names, descriptions and arguments of the tools.
Knows nothing of: the protocol; how a tool does its work (mcp_calls.py, which brings the store
along and is imported at the first call: a client waits for the first reply, not for the call).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.mcp_place import McpPlace
from uwf_git.commands.mcp_server import McpServer, Tool

_VERSION = "1"
"""Of the tools, not of the package."""

_INSTRUCTIONS = (
    "You are playing a role in a thread, a chain of steps taken by several agents. read_role says "
    "what is asked of you, read_thread and read_step what was done before you. submit_result "
    "hands in your result, and tells what is wrong with it while you can still mend it."
)

_INTEGER = {"type": "integer"}
_TEXT = {"type": "string"}
_THREAD_ID = _TEXT | {"description": "Another thread than your own: any unique beginning of its id"}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema | {"additionalProperties": False}


class _Declared(NamedTuple):
    """A tool without the agent for which it works."""

    name: str
    """Also of the function in mcp_calls.py."""

    description: str
    parameters: dict[str, Any]
    is_read_only: bool = True


_TOOLS = (
    _Declared(
        "read_thread",
        "Read what was said and done in a thread, as Markdown. Without thread_id: your own.",
        _object(
            thread_id=_THREAD_ID,
            last=_INTEGER | {"minimum": 1, "description": "Only so many of the newest steps"},
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
        "Read what is asked of you, as JSON: the task, your role, the JSON Schema of the "
        "fields that you have to hand in, and why an earlier attempt failed.",
        _object(),
    ),
    _Declared(
        "submit_result",
        "Hand in your result when your work is done: meta holds the fields that your role's "
        "JSON Schema asks for (see read_role), content the text for those who read on. If "
        "something is wrong with it you are told what; mend it and call this again. What "
        "you hand in last counts. End your turn after that.",
        _object(
            "meta",
            meta={"type": "object", "description": "The fields, as the schema asks"},
            content=_TEXT | {"description": "What you have to say, in Markdown"},
        ),
        is_read_only=False,
    ),
)


def build_server(place: McpPlace) -> McpServer:
    """Build the server for one agent."""

    def bind(name: str) -> Callable[[Mapping[str, Any]], str]:
        def call(arguments: Mapping[str, Any]) -> str:
            from uwf_git.commands import mcp_calls  # noqa: PLC0415 (brings the store along)

            answered: str = getattr(mcp_calls, name)(place, arguments)
            return answered

        return call

    tools = [
        Tool(each.name, each.description, each.parameters, bind(each.name), each.is_read_only)
        for each in _TOOLS
    ]
    return McpServer(_VERSION, _INSTRUCTIONS, tools)
