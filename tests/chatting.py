"""A chat program, played by the official client of the Model Context Protocol."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result, TextContent
from pydantic import ConfigDict, Field

TASKS = "io.modelcontextprotocol/tasks"

ASKING = """\
name: asking
description: Write, and ask a person.
roles:
  writer:
    description: Writes
    systemPrompt: Write.
    outputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
  boss:
    description: Says whether it may go out
    systemPrompt: May it?
    outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
agentOverrides: {boss: human}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: boss}
  - {from: boss, to: writer, when: meta.ok = false}
  - {from: boss, to: $END}
"""


class TaskHandle(Result):
    """What a call returns that made a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class TaskParams(RequestParams):
    """Its parameters."""

    model_config = ConfigDict(extra="allow")


class TaskRequest(Request[TaskParams, str]):
    """A request about one task."""

    method: str
    params: TaskParams
    name_param = "taskId"


class AnyResult(Result):
    """An answer, as it came."""

    model_config = ConfigDict(extra="allow")


async def _say(handle: TaskHandle, _context: ClaimContext) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=handle.task_id)])


class TasksExtension(ClientExtension):
    """Says that the client knows tasks; the caller asks for what became of one."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=_say)]


def chat(server: Any, *, tasks: bool = True, mode: Any = "auto") -> Client:
    """Return a client of *server*; with *tasks* it declares that extension."""
    return Client(server, mode=mode, extensions=[TasksExtension()] if tasks else None)


def stdio(place: Path, **variables: str) -> StdioServerParameters:
    """Return how `uwf mcp --workflows` is started in *place*."""
    env = {**os.environ, **variables}
    words = ["-m", "uwf_git", "mcp", "--workflows"]
    return StdioServerParameters(command=sys.executable, args=words, env=env, cwd=place)


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that works, and return its text; of one that makes a task, the id."""
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    return block.text


async def wait(client: Client, thread: str) -> dict[str, Any]:
    """Wait until *thread* rests, however slow the machine is."""
    while True:
        told: dict[str, Any] = json.loads(await call(client, "wait_thread", thread_id=thread))
        if told["status"] not in {"ready", "running", "split"}:
            return told


async def ask(client: Client, verb: str, task: str, **params: Any) -> dict[str, Any]:
    """Send `tasks/…` about one task, and return the answer."""
    given = TaskParams(taskId=task, **params)  # type: ignore[call-arg]  # extra fields are allowed
    request = TaskRequest(method=f"tasks/{verb}", params=given)
    answer = await client.session.send_request(request, AnyResult)
    return answer.model_dump(by_alias=True)


async def answer(client: Client, task: str, content: Any, action: str = "accept") -> str:
    """Answer the one open question of a task as its user; return its key."""
    (key,) = (await ask(client, "get", task))["inputRequests"]
    response = {"action": action, **({} if content is None else {"content": content})}
    await ask(client, "update", task, inputResponses={key: response})
    return str(key)
