"""`uwf ui` as the conformance suite needs it: `/mcp` has the tools that its scenarios name.

Each of them starts a workflow of that name, as start_workflow would. The suite has no token, so
none is asked for; the rest of the guard is as it is.
"""

from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

from uwf_git.cli.uwf import program
from uwf_git.commands.mcp.server import McpServer, McpTool, NewTask
from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server

TOOLS = ("slow_compute", "confirm_delete", "failing_job", "multi_input")


def build(place: ChatPlace) -> McpServer:
    """Build the server of a chat, and add the tools."""
    server = build_workflow_server(place)
    start = next(tool.call for tool in server.tools if tool.name == "start_workflow")

    def bind(name: str) -> Callable[[Mapping[str, Any]], str | NewTask]:
        def call(arguments: Mapping[str, Any]) -> str | NewTask:
            # How long it takes is part of the name: an agent knows its role before it has read.
            seconds = arguments.get("seconds", 0)
            return start({"workflow": f"{name}{seconds or ''}", "prompt": "The suite."})

        return call

    greet = server.tools[0]._replace(name="greet", parameters={"type": "object"})
    greet = greet._replace(call=lambda arguments: f"Hello, {arguments.get('name')}!")
    tools = [greet, *(McpTool(name, name, {"type": "object"}, bind(name)) for name in TOOLS)]
    return server._replace(tools=[*server.tools, *tools])


if __name__ == "__main__":
    with (
        patch("uwf_git.web.ui.answers._has_token", lambda *_: True),
        patch("uwf_git.web.ui.application.build_workflow_server", build),
    ):
        program()
