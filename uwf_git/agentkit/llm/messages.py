"""A conversation with a model, independent of the endpoint's API."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class ModelTool(NamedTuple):
    """A function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments: an object."""


class ToolCall(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    """None: the model did not write a JSON object."""


class ToolResult(NamedTuple):
    """The result of a call."""

    call_id: str
    text: str
    is_error: bool = False


class UserMessage(NamedTuple):
    """A message to the model."""

    text: str


class ModelMessage(NamedTuple):
    """A message of the model."""

    text: str
    calls: tuple[ToolCall, ...]
    echo: Mapping[str, Any]
    """The message in the endpoint's form, to send back unchanged: providers sign parts of it."""


class ToolResults(NamedTuple):
    """The results of all calls of one turn."""

    results: tuple[ToolResult, ...]
    note: str = ""
    """A text after the results."""


Message = UserMessage | ModelMessage | ToolResults


class ObjectShape(NamedTuple):
    """A request for an answer in JSON."""

    schema: Mapping[str, Any] | None
    """A strict schema; None: any object."""


class ModelRequest(NamedTuple):
    """One request, with the whole conversation."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ModelTool, ...] = ()
    forced: str | None = None
    """The one tool that the model has to call."""

    shape: ObjectShape | None = None


StopReason = Literal["end", "too-long", "filtered"]


class ModelReply(NamedTuple):
    """One reply of a model."""

    said: ModelMessage
    stop: StopReason
    usage: Mapping[str, Any]
    model: str
    """The model that the endpoint names."""


def read_object(text: str) -> dict[str, Any] | None:
    """Read *text* as one JSON object, in a code fence or not; None if it is something else.

    Text around the object is ignored if it is the only object: models add explanations.
    """
    # Imports cbor2.
    from uwf_git.agents.reply import (  # noqa: PLC0415 (see above)
        BadJson,
        parse_strict_json,
    )

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
