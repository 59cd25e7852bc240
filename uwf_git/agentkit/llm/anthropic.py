"""The Anthropic form of requests and replies: POST {base}/messages, version 2023-06-01.

Absent or malformed parts of a reply read as absent. Input tokens include the cached ones, as at
other endpoints.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.agentkit.llm.endpoint import Endpoint, join_url
from uwf_git.agentkit.llm.messages import (
    Message,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelTool,
    StopReason,
    ToolCall,
    ToolResults,
    UserMessage,
)
from uwf_git.agentkit.records import build_usage, find

PATH = "/messages"

_VERSION = "2023-06-01"

_STOPS: dict[str, StopReason] = {
    "max_tokens": "too-long",
    "model_context_window_exceeded": "too-long",
    "refusal": "filtered",
}


def build_url(endpoint: Endpoint) -> str:
    return join_url(endpoint.url, PATH, version="/v1")


def build_headers(endpoint: Endpoint) -> dict[str, str]:
    key = {} if endpoint.key is None else {"x-api-key": endpoint.key}
    return {"anthropic-version": _VERSION, **key}


def build_body(endpoint: Endpoint, request: ModelRequest, *, limit_name: str) -> dict[str, Any]:
    """Build the request; this API has no ``shape``, so an object is requested by a tool."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        limit_name: endpoint.max_tokens,
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
    blocks = find(document, list, "content")
    if blocks is None:
        return None
    text = "".join(find(block, str, "text") or "" for block in blocks if _is(block, "text"))
    calls = tuple(
        ToolCall(
            find(block, str, "id") or f"call_{number}",
            find(block, str, "name") or "",
            find(block, dict, "input"),
        )
        for number, block in enumerate(blocks)
        if _is(block, "tool_use")
    )
    return ModelReply(
        said=ModelMessage(text, calls, {"role": "assistant", "content": blocks}),
        stop=_STOPS.get(find(document, str, "stop_reason") or "", "end"),
        usage=_parse_usage(document),
        model=find(document, str, "model") or "",
    )


def _is(block: Any, kind: str) -> bool:
    return find(block, str, "type") == kind


def _tools_called(messages: tuple[Message, ...]) -> tuple[ModelTool, ...]:
    """List the tools that *messages* call; the API refuses calls of tools that are not listed."""
    said = [message for message in messages if isinstance(message, ModelMessage)]
    names = {call.name: None for message in said for call in message.calls}
    return tuple(
        ModelTool(name, "Not to be called any more.", {"type": "object"}) for name in names
    )


def _build_message(message: Message) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": message.text}
    if isinstance(message, ModelMessage):
        return dict(message.echo)
    return {"role": "user", "content": _build_results(message)}


def _build_results(message: ToolResults) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            # The API refuses empty texts.
            "content": result.text or "(nothing)",
            "is_error": result.is_error,
        }
        for result in message.results
    ]
    return [*blocks, {"type": "text", "text": message.note}] if message.note else blocks


def _build_tool(tool: ModelTool) -> dict[str, Any]:
    schema = dict(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _parse_usage(document: Mapping[str, Any]) -> dict[str, Any]:
    usage = find(document, dict, "usage")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    told = [part for name in names if (part := find(usage, int, name)) is not None]
    return build_usage(
        inputTokens=sum(told) if told else None,
        outputTokens=find(usage, int, "output_tokens"),
        cachedInputTokens=find(usage, int, "cache_read_input_tokens"),
    )
