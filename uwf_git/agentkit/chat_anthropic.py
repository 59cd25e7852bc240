"""Messages: the words of Anthropic, and of all that speak as it does.

Owns: the request's and the reply's shape. Knows nothing of: HTTP, what is asked.
Always true: an absent or odd part of a reply reads as absent; input tokens are counted as other
endpoints do, those that were cached among them.
Source: POST {base}/messages, version 2023-06-01, not streamed.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.agentkit.endpoint import Endpoint, join_url
from uwf_git.agentkit.model_words import (
    Call,
    Message,
    ModelReply,
    ModelRequest,
    Outcomes,
    Said,
    Stop,
    Told,
    Tool,
)
from uwf_git.agentkit.records import build_usage, find

PATH = "/messages"

_VERSION = "2023-06-01"

_STOPS: dict[str, Stop] = {
    "max_tokens": "too-long",
    "model_context_window_exceeded": "too-long",
    "refusal": "filtered",
}


def build_url(endpoint: Endpoint) -> str:
    """Give where to post; the base may or may not end in /v1."""
    return join_url(endpoint.url, PATH, version="/v1")


def build_headers(endpoint: Endpoint) -> dict[str, str]:
    """Give the headers that carry the key, if there is one, and the version."""
    key = {} if endpoint.key is None else {"x-api-key": endpoint.key}
    return {"anthropic-version": _VERSION, **key}


def build_body(endpoint: Endpoint, request: ModelRequest) -> dict[str, Any]:
    """Build the request; a ``shape`` has no words here, and has to be asked for by a tool."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        "max_tokens": endpoint.max_tokens,
        "messages": [_build_message(message) for message in request.messages],
    }
    if request.system:
        body["system"] = request.system
    if endpoint.temperature is not None:
        body["temperature"] = endpoint.temperature
    tools = request.tools or _tools_called(request.messages)
    if tools:
        body["tools"] = [_build_tool(tool) for tool in tools]
    if request.forced is not None:
        body["tool_choice"] = {"type": "tool", "name": request.forced}
    elif tools and not request.tools:
        body["tool_choice"] = {"type": "none"}
    return body


def parse_reply(document: Mapping[str, Any]) -> ModelReply | None:
    """Read a reply; None if it is none."""
    blocks = find(document, list, "content")
    if blocks is None:
        return None
    text = "".join(find(block, str, "text") or "" for block in blocks if _is(block, "text"))
    calls = tuple(
        Call(
            find(block, str, "id") or f"call_{number}",
            find(block, str, "name") or "",
            find(block, dict, "input"),
        )
        for number, block in enumerate(blocks)
        if _is(block, "tool_use")
    )
    return ModelReply(
        said=Said(text, calls, {"role": "assistant", "content": blocks}),
        stop=_STOPS.get(find(document, str, "stop_reason") or "", "end"),
        usage=_parse_usage(document),
        model=find(document, str, "model") or "",
    )


def _is(block: Any, kind: str) -> bool:
    return find(block, str, "type") == kind


def _tools_called(messages: tuple[Message, ...]) -> tuple[Tool, ...]:
    """List the tools of the calls in *messages*: it refuses a call of a tool that is not there."""
    said = [message for message in messages if isinstance(message, Said)]
    names = {call.name: None for message in said for call in message.calls}
    return tuple(Tool(name, "Not to be called any more.", {"type": "object"}) for name in names)


def _build_message(message: Message) -> dict[str, Any]:
    if isinstance(message, Told):
        return {"role": "user", "content": message.text}
    if isinstance(message, Said):
        return dict(message.echo)
    return {"role": "user", "content": _build_outcomes(message)}


def _build_outcomes(message: Outcomes) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": outcome.call_id,
            # Empty texts are refused.
            "content": outcome.text or "(nothing)",
            "is_error": outcome.is_error,
        }
        for outcome in message.outcomes
    ]
    return [*blocks, {"type": "text", "text": message.note}] if message.note else blocks


def _build_tool(tool: Tool) -> dict[str, Any]:
    schema = dict(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _parse_usage(document: Mapping[str, Any]) -> dict[str, Any]:
    usage = find(document, dict, "usage")
    cached = find(usage, int, "cache_read_input_tokens")
    parts = [
        find(usage, int, "input_tokens"),
        find(usage, int, "cache_creation_input_tokens"),
        cached,
    ]
    told = [part for part in parts if part is not None]
    return build_usage(
        inputTokens=sum(told) if told else None,
        outputTokens=find(usage, int, "output_tokens"),
        cachedInputTokens=cached,
    )
