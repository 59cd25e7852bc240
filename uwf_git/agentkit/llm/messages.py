"""A conversation with a model, and its two forms; the strict schema of an answer.

OpenAI: POST {base}/chat/completions. Anthropic: POST {base}/messages, version 2023-06-01. Absent or
malformed parts of a reply read as absent, since endpoints differ in what they send.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.ladder import drop_thoughts, find_misfit, move_schema
from uwf_git.agentkit.llm.endpoint import Endpoint, join_url
from uwf_git.agentkit.records import build_usage, find, read_usage
from uwf_git.agentkit.turn import AskFailed
from uwf_git.agents.command_line import BadJson, parse_strict_json
from uwf_git.model.builtin import follow_reference


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


class ModelRequest(NamedTuple):
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ModelTool, ...] = ()
    forced: str | None = None

    shape: Mapping[str, Any] | Literal[True] | None = None
    """A strict schema for an answer in JSON; True: any object."""


StopReason = Literal["end", "too-long", "filtered", "broken"]


class ModelReply(NamedTuple):
    said: ModelMessage
    stop: StopReason
    usage: Mapping[str, Any]
    model: str
    why: str = ""
    """Of a broken answer: the endpoint's word for it."""


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


def read_lone_object(text: str) -> dict[str, Any] | None:
    """Read *text* if it is a JSON object and nothing else, in a code fence or not."""
    bare = text.strip().removeprefix("```").removeprefix("json").removesuffix("```").strip()
    return read_object(bare) if bare[:1] + bare[-1:] == "{}" else None


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


# The requests and replies of both forms.

_NEW_LIMIT = "max_completion_tokens"

# Thoughts, which some endpoints need in the calls that they get back, and others refuse there.
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")

_STOPS: dict[str, StopReason] = {
    "abort": "broken",
    "error": "broken",
    "insufficient_system_resource": "broken",
    "length": "too-long",
    "content_filter": "filtered",
    "max_tokens": "too-long",
    "model_context_window_exceeded": "too-long",
    "model_length": "too-long",
    "refusal": "filtered",
}


def build_url(endpoint: Endpoint) -> str:
    if endpoint.api == "openai":
        return join_url(endpoint.url, "/chat/completions")
    return join_url(endpoint.url, "/messages", version="/v1")


def build_headers(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.api == "openai":
        return {} if endpoint.key is None else {"Authorization": f"Bearer {endpoint.key}"}
    key = {} if endpoint.key is None else {"x-api-key": endpoint.key}
    return {"anthropic-version": "2023-06-01", **key}


def build_body(endpoint: Endpoint, request: ModelRequest, *, limit_name: str) -> dict[str, Any]:
    """Build the request; *limit_name* is the endpoint's name for the limit of an answer."""
    build = _build_openai if endpoint.api == "openai" else _build_anthropic
    limits = {limit_name: endpoint.max_tokens, "temperature": endpoint.temperature}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return {"model": endpoint.model, **known, **build(request)}


def wants_other_limit(message: str, limit_name: str) -> str | None:
    return _NEW_LIMIT if limit_name == "max_tokens" and _NEW_LIMIT in message else None


def refuses_thoughts(message: str) -> bool:
    named = r"\breasoning_(content|details)\b|['\"`.]reasoning['\"`:]"
    needed = re.search(r"(?i)passed back|missing|required", message)
    return not needed and re.search(named, message) is not None


def parse_reply(endpoint: Endpoint, document: Mapping[str, Any]) -> ModelReply | None:
    return _parse_openai(document) if endpoint.api == "openai" else _parse_anthropic(document)


def _build_openai(request: ModelRequest) -> dict[str, Any]:
    messages = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        if isinstance(message, UserMessage):
            messages.append({"role": "user", "content": message.text})
        elif isinstance(message, ModelMessage):
            messages.append(dict(message.echo))
        else:
            for result in message.results:
                text = f"error: {result.text}" if result.is_error else result.text
                messages.append({"role": "tool", "tool_call_id": result.call_id, "content": text})
            if message.note:
                messages.append({"role": "user", "content": message.note})
    body: dict[str, Any] = {"messages": messages}
    if request.tools:
        tools = [{**tool._asdict(), "parameters": dict(tool.parameters)} for tool in request.tools]
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
    if request.forced is not None:
        body["tool_choice"] = {"type": "function", "function": {"name": request.forced}}
    if request.shape is True:
        body["response_format"] = {"type": "json_object"}
    elif request.shape is not None:
        strict = {"name": "result", "strict": True, "schema": dict(request.shape)}
        body["response_format"] = {"type": "json_schema", "json_schema": strict}
    return body


def _parse_openai(document: Mapping[str, Any]) -> ModelReply | None:
    choices = find(document, list, "choices")
    message = find(choices[0], dict, "message") if choices else None
    if choices is None or message is None:
        return None
    called = [
        (each, call)
        for number, each in enumerate(find(message, list, "tool_calls") or [])
        if (call := _parse_call(each, number)) is not None
    ]
    content = message.get("content")
    if isinstance(content, list):
        # Some endpoints send the text in parts, and a refusal has its own key.
        content = "".join(find(part, str, "text") or "" for part in content)
    text = (content if isinstance(content, str) else "") or find(message, str, "refusal") or ""
    echo: dict[str, Any] = {"role": "assistant", "content": text or None}
    if called:
        # Whole, since some endpoints sign their calls; with the ids that the results name.
        echo["tool_calls"] = [{**each, "id": call.id} for each, call in called]
        echo |= {name: message[name] for name in THOUGHTS if message.get(name) is not None}
    word = "refusal" if text and not content else find(choices[0], str, "finish_reason") or ""
    return ModelReply(
        said=ModelMessage(drop_thoughts(text), tuple(call for _, call in called), echo),
        stop="broken" if find(choices[0], dict, "error") else _STOPS.get(word, "end"),
        why=find(choices[0], str, "error", "message") or word,
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


def _build_anthropic(request: ModelRequest) -> dict[str, Any]:
    """Build the request; this API has no ``shape``, so an object is requested by a tool."""
    messages: list[dict[str, Any]] = []
    # The API refuses calls of tools that are not listed.
    called: dict[str, ModelTool] = {}
    for message in request.messages:
        if isinstance(message, UserMessage):
            messages.append({"role": "user", "content": message.text})
        elif isinstance(message, ModelMessage):
            messages.append(dict(message.echo))
            for call in message.calls:
                over = ModelTool(call.name, "Not to be called any more.", {"type": "object"})
                called[call.name] = over
        else:
            messages.append({"role": "user", "content": _build_results(message)})
    body: dict[str, Any] = {"messages": messages}
    if request.system:
        body["system"] = request.system
    tools = request.tools or tuple(called.values())
    if tools:
        body["tools"] = [
            {"name": name, "description": description, "input_schema": dict(schema)}
            for name, description, schema in tools
        ]
    if request.forced is not None:
        body["tool_choice"] = {"type": "tool", "name": request.forced}
    elif tools and not request.tools:
        body["tool_choice"] = {"type": "none"}
    return body


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


def _parse_anthropic(document: Mapping[str, Any]) -> ModelReply | None:
    blocks = find(document, list, "content")
    if blocks is None:
        return None
    texts = [find(each, str, "text") or "" for each in blocks if find(each, str, "type") == "text"]
    calls = []
    for number, block in enumerate(blocks):
        if find(block, str, "type") == "tool_use":
            # In what is sent back, too: the result names it.
            block["id"] = find(block, str, "id") or f"call_{number}"
            name, given = find(block, str, "name") or "", find(block, dict, "input")
            calls.append(ToolCall(block["id"], name, given))
    usage = find(document, dict, "usage")
    # Input tokens include the cached ones, as at other endpoints.
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    told = [part for name in names if (part := find(usage, int, name)) is not None]
    return ModelReply(
        said=ModelMessage("".join(texts), tuple(calls), {"role": "assistant", "content": blocks}),
        stop=_STOPS.get(find(document, str, "stop_reason") or "", "end"),
        usage=build_usage(
            inputTokens=sum(told) if told else None,
            outputTokens=find(usage, int, "output_tokens"),
            cachedInputTokens=find(usage, int, "cache_read_input_tokens"),
        ),
        model=find(document, str, "model") or "",
    )


# The strict schema that endpoints take, derived from a role's schema, and its values restored.
#
# A restored value fits the role's schema if every keyword could be kept (``is_exact``); otherwise
# the role's schema still has to be checked. Only the difference between a null and an absent
# optional field is lost.
# Source: "structured outputs" of OpenAI and those after it: every object closed, every property
# required, no optional but nullable, few keywords, little depth.

_DEEPEST = 9
_MOST_PARTS = 2_000
_LONGEST_CHAIN = 10

_ANNOTATIONS = {
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    "$comment", "$schema", "$id", "$defs", "definitions",
}  # fmt: skip
_SHAPES = {"type", "properties", "required", "additionalProperties", "items", "enum", "const"}
_ALTERNATIVES = ("anyOf", "oneOf")

_SIMPLE = {"string", "integer", "number", "boolean", "null"}


class StrictSchema(NamedTuple):
    """What ``derive_strict`` derives."""

    schema: dict[str, Any]

    is_exact: bool
    """Whether it says all that the role's schema says; the rest is checked afterwards."""


class _Inexpressible(Exception):
    """No strict schema can say this: an open object, a value of any type, a loop."""


def derive_strict(schema: Any) -> StrictSchema | None:
    """Derive the strict form of *schema*; None if there is none."""
    derivation = _Derivation(schema)
    try:
        derived = derivation.derive(schema, depth=0)
    except (_Inexpressible, RecursionError):
        return None
    return StrictSchema(derived, derivation.is_exact)


def restore(value: Any, schema: Any) -> Any:
    """Return *value*, of the strict schema, as *schema* means it: without optional null fields."""
    return _restore(value, schema, schema, depth=0)


class _Derivation:
    """One derivation; *root* is the schema that references are resolved in."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._parts = 0
        self.is_exact = True

    def derive(self, schema: Any, *, depth: int) -> dict[str, Any]:
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise _Inexpressible
        resolved, is_whole = _resolve(schema, self._root)
        if not is_whole or resolved.keys() - _SHAPES - _ANNOTATIONS - set(_ALTERNATIVES):
            self.is_exact = False
        derived = self._shape(resolved, depth)
        description = resolved.get("description")
        return {**derived, "description": description} if isinstance(description, str) else derived

    def _shape(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        for keyword in _ALTERNATIVES:
            if isinstance(schema.get(keyword), list):
                return self._alternatives(schema, keyword, depth)
        if "const" in schema:
            return self._constants(schema, [schema["const"]])
        if schema.get("enum"):
            return self._constants(schema, schema["enum"])
        kinds = _kinds(schema)
        if len(kinds) == 1:
            return self._kind(kinds[0], schema, depth)
        return {"anyOf": [self._kind(kind, schema, depth) for kind in kinds]}

    def _alternatives(self, schema: dict[str, Any], keyword: str, depth: int) -> dict[str, Any]:
        choices = schema[keyword]
        if not choices or schema.keys() & (_SHAPES - {"type"} | set(_ALTERNATIVES) - {keyword}):
            raise _Inexpressible
        if keyword == "oneOf" or "type" in schema:
            # That only one of them holds is checked afterwards.
            self.is_exact = False
        return {"anyOf": [self.derive(choice, depth=depth + 1) for choice in choices]}

    def _constants(self, schema: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        if schema.keys() & (_SHAPES - {"const", "enum"}) or {"const", "enum"} <= schema.keys():
            self.is_exact = False
        by_kind: dict[str, list[Any]] = {}
        for value in values:
            by_kind.setdefault(_kind_of(value), []).append(value)
        parts = [{"type": kind, "enum": each} for kind, each in by_kind.items()]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _kind(self, kind: str, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        if kind in _SIMPLE:
            return {"type": kind}
        if kind == "array" and "items" in schema:
            return {"type": "array", "items": self.derive(schema["items"], depth=depth + 1)}
        if kind == "object":
            return self._object(schema, depth)
        raise _Inexpressible

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), _required(schema)
        # Closed, a map could hold nothing.
        is_map = not properties and schema.get("additionalProperties") is not False
        if is_map or not isinstance(properties, dict) or not required <= properties.keys():
            raise _Inexpressible
        parts = {name: self.derive(part, depth=depth + 1) for name, part in properties.items()}
        derived = {name: one if name in required else _nullable(one) for name, one in parts.items()}
        return {
            "type": "object",
            "properties": derived,
            "required": list(derived),
            "additionalProperties": False,
        }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind == "null":
        return schema
    if kind in _SIMPLE and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _kinds(schema: dict[str, Any]) -> list[str]:
    """List the types of *schema*; the one that its keywords imply if it names none."""
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else named
    if kinds is None:
        kinds = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    if not isinstance(kinds, list) or not kinds:
        raise _Inexpressible
    return [str(kind) for kind in kinds]


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, types in (("boolean", bool), ("integer", int), ("number", float), ("string", str)):
        if isinstance(value, types):
            return kind
    raise _Inexpressible


def _required(schema: dict[str, Any]) -> set[str]:
    required = schema.get("required", [])
    return set(required) if isinstance(required, list) else set()


def _resolve(schema: Any, root: Any) -> tuple[dict[str, Any], bool]:
    """Resolve references; return also whether no keyword beside one was dropped."""
    is_whole = True
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(schema, dict):
            break
        target = schema.get("$ref")
        if not isinstance(target, str):
            return schema, is_whole
        is_whole = is_whole and not schema.keys() - {"$ref"} - _ANNOTATIONS
        schema = follow_reference(root, target)
    raise _Inexpressible


def _restore(value: Any, schema: Any, root: Any, *, depth: int) -> Any:
    if depth > 2 * _DEEPEST:
        return value
    try:
        resolved, _ = _resolve(schema, root)
    except _Inexpressible:
        return value
    for keyword in _ALTERNATIVES:
        if isinstance(resolved.get(keyword), list):
            return _restore_choice(value, resolved[keyword], root, depth)
    if isinstance(value, list) and "items" in resolved:
        return [_restore(each, resolved["items"], root, depth=depth + 1) for each in value]
    properties = resolved.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    required = _required(resolved)
    return {
        name: _restore(each, properties.get(name, True), root, depth=depth + 1)
        for name, each in value.items()
        if each is not None or name in required or name not in properties
    }


def _restore_choice(value: Any, choices: list[Any], root: Any, depth: int) -> Any:
    """Restore *value* by the first alternative that it then fits."""
    for choice in choices:
        restored = _restore(value, choice, root, depth=depth + 1)
        if not find_misfit(restored, _rooted(choice, root)):
            return restored
    return value


def _rooted(choice: Any, root: Any) -> Any:
    """Return *choice* as a separate schema whose references still resolve."""
    if not isinstance(choice, dict) or '"$ref"' not in json.dumps(choice):
        return choice
    place = "#/$defs/root"
    return {**move_schema(choice, place), "$defs": {"root": move_schema(root, place)}}
