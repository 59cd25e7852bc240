"""A conversation with a model, independent of the endpoint's API."""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.adapter import AskFailed
from uwf_git.agents.reply import BadJson, parse_strict_json


class ModelTool(NamedTuple):
    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments: an object."""


class ToolCall(NamedTuple):
    id: str
    name: str
    arguments: dict[str, Any] | None
    """None: the model did not write a JSON object."""


class ToolResult(NamedTuple):
    call_id: str
    text: str
    is_error: bool = False


class UserMessage(NamedTuple):
    text: str


class ModelMessage(NamedTuple):
    text: str
    calls: tuple[ToolCall, ...]
    echo: Mapping[str, Any]
    """The message in the endpoint's form, to send back unchanged: providers sign parts of it."""


class ToolResults(NamedTuple):
    """The results of all calls of one turn."""

    results: tuple[ToolResult, ...]
    note: str = ""


Message = UserMessage | ModelMessage | ToolResults


class ObjectShape(NamedTuple):
    """A request for an answer in JSON."""

    schema: Mapping[str, Any] | None
    """A strict schema; None: any object."""


class ModelRequest(NamedTuple):
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ModelTool, ...] = ()
    forced: str | None = None

    shape: ObjectShape | None = None


StopReason = Literal["end", "too-long", "filtered"]


class ModelReply(NamedTuple):
    said: ModelMessage
    stop: StopReason
    usage: Mapping[str, Any]
    model: str


def read_object(text: str) -> dict[str, Any] | None:
    """Read *text* as the only JSON object in it, in a code fence or not; None without any."""
    bare = text.strip(" \t\r\n\ufeff")
    inner = bare[bare.find("{") : bare.rfind("}") + 1]
    for candidate in (bare, inner):
        if not candidate.startswith("{"):
            continue
        try:
            value = parse_strict_json(candidate)
        except BadJson:
            continue
        if isinstance(value, dict):
            return value
    return None


class Conversations:
    """The conversations of one adapter, each under a name that is unique among processes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: dict[str, tuple[Message, ...]] = {}

    def begin(self, prompt: str, session: str | None) -> tuple[str, tuple[Message, ...]]:
        if session is None:
            return f"{self._name}-{os.urandom(8).hex()}", (UserMessage(prompt),)
        if session not in self._kept:
            raise AskFailed(
                "no-session",
                f"{self._name} does not know the conversation {session:.60} any more",
                hint="its conversations end with its process; set resume=never",
            )
        return session, go_on(self._kept[session], prompt)

    def keep(self, session: str, messages: tuple[Message, ...]) -> None:
        self._kept[session] = messages


def go_on(messages: tuple[Message, ...], prompt: str) -> tuple[Message, ...]:
    last = messages[-1] if messages else None
    if isinstance(last, ModelMessage) and last.calls:
        results = tuple(ToolResult(call.id, "Received; see below.") for call in last.calls)
        return (*messages, ToolResults(results, prompt))
    return (*messages, UserMessage(prompt))
