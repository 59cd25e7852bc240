"""The OpenAI form of requests and replies: POST {base}/chat/completions.

Absent or malformed parts of a reply read as absent, since endpoints differ in what they send.
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
    read_object,
)
from uwf_git.agentkit.records import find, read_usage

PATH = "/chat/completions"

_STOPS: dict[str, StopReason] = {"length": "too-long", "content_filter": "filtered"}

_NEW_LIMIT = "max_completion_tokens"


def build_url(endpoint: Endpoint) -> str:
    return join_url(endpoint.url, PATH)


def build_headers(endpoint: Endpoint) -> dict[str, str]:
    return {} if endpoint.key is None else {"Authorization": f"Bearer {endpoint.key}"}


def build_body(endpoint: Endpoint, request: ModelRequest, *, limit_name: str) -> dict[str, Any]:
    """Build the request; *limit_name* is the endpoint's name for the limit of an answer."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    messages = [part for message in request.messages for part in _build_message(message)]
    body: dict[str, Any] = {"model": endpoint.model, "messages": [*system, *messages]}
    if endpoint.max_tokens is not None:
        body[limit_name] = endpoint.max_tokens
    if endpoint.temperature is not None:
        body["temperature"] = endpoint.temperature
    if request.tools:
        body["tools"] = [_build_tool(tool) for tool in request.tools]
    if request.forced is not None:
        body["tool_choice"] = {"type": "function", "function": {"name": request.forced}}
    if request.shape is not None:
        body["response_format"] = _build_format(request.shape.schema)
    return body


def wants_other_limit(message: str, limit_name: str) -> str | None:
    if limit_name == "max_tokens" and _NEW_LIMIT in message:
        return _NEW_LIMIT
    return None


def parse_reply(document: Mapping[str, Any]) -> ModelReply | None:
    choices = find(document, list, "choices")
    message = find(choices[0], dict, "message") if choices else None
    if choices is None or message is None:
        return None
    calls = tuple(
        call
        for number, each in enumerate(find(message, list, "tool_calls") or [])
        if (call := _parse_call(each, number)) is not None
    )
    text = _parse_text(message)
    echo: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        # Whole, since some endpoints sign their calls.
        echo["tool_calls"] = message["tool_calls"]
    finish = find(choices[0], str, "finish_reason") or ""
    return ModelReply(
        said=ModelMessage(text, calls, echo),
        stop=_STOPS.get(finish, "end"),
        usage=read_usage(
            find(document, dict, "usage"),
            inputTokens="prompt_tokens",
            outputTokens="completion_tokens",
            cachedInputTokens="prompt_tokens_details.cached_tokens",
            reasoningTokens="completion_tokens_details.reasoning_tokens",
            costUsd="cost",
        ),
        model=find(document, str, "model") or "",
    )


def _build_message(message: Message) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": message.text}]
    if isinstance(message, ModelMessage):
        return [dict(message.echo)]
    parts = [_build_result(message, number) for number in range(len(message.results))]
    return [*parts, {"role": "user", "content": message.note}] if message.note else parts


def _build_result(message: ToolResults, number: int) -> dict[str, Any]:
    result = message.results[number]
    text = f"error: {result.text}" if result.is_error else result.text
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _build_tool(tool: ModelTool) -> dict[str, Any]:
    parameters = dict(tool.parameters)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _build_format(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {"type": "json_object"}
    strict = {"name": "result", "strict": True, "schema": dict(schema)}
    return {"type": "json_schema", "json_schema": strict}


def _parse_text(message: Mapping[str, Any]) -> str:
    """Return the text; some endpoints send it in parts, and a refusal has its own key."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(find(part, str, "text") or "" for part in content)
    text = content if isinstance(content, str) else ""
    return text or find(message, str, "refusal") or ""


def _parse_call(record: Any, number: int) -> ToolCall | None:
    name = find(record, str, "function", "name")
    if name is None:
        return None
    # Some local servers omit the id.
    call_id = find(record, str, "id") or f"call_{number}"
    arguments = find(record, dict, "function", "arguments")
    if arguments is None:
        written = find(record, str, "function", "arguments") or ""
        arguments = read_object(written) if written.strip() else {}
    return ToolCall(call_id, name, arguments)
