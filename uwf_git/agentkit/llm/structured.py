"""Ask a model for an object, by the strictest way that its endpoint supports.

The next way is tried only if the endpoint refused the last one, or if the caller's check rejected
the object. The usage of all requests is added up.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.extraction.role_object import WantedObject
from uwf_git.agentkit.extraction.strict_schema import derive_strict, restore
from uwf_git.agentkit.llm.call import Model
from uwf_git.agentkit.llm.errors import RequestRefused
from uwf_git.agentkit.llm.messages import (
    ModelReply,
    ModelRequest,
    ModelTool,
    ObjectShape,
    read_object,
)
from uwf_git.model.thread import add_usage

Way = Literal["schema", "tool", "json", "plain"]
"""``response_format`` with a strict schema; one tool that has to be called; ``response_format``
with any object and the schema in words; only words."""

SUBMIT = "submit_result"

_WAYS: dict[str, tuple[Way, ...]] = {
    "openai": ("schema", "tool", "json", "plain"),
    "anthropic": ("tool", "plain"),
}


class ObjectReply(NamedTuple):
    value: dict[str, Any] | None
    """None: the reply holds no object."""

    reply: ModelReply
    way: Way
    usage: Mapping[str, Any]


def ask_for_object(
    model: Model,
    request: ModelRequest,
    wanted: WantedObject,
    *,
    check: Callable[[dict[str, Any] | None], str] | None = None,
    timeout_s: float | None = None,
) -> ObjectReply:
    """Ask *model* for an object, by the next way while *check* says what is wrong with it.

    Without *check*, return the first reply, with or without an object.
    """
    strict = derive_strict(wanted.schema)
    ways = [way for way in _WAYS[model.endpoint.api] if way not in model.refused]
    if strict is None:
        ways = [way for way in ways if way != "schema"]
    usage: dict[str, Any] = {}
    problem = ""
    for way in ways:
        sent = wanted.schema if strict is None else strict.schema
        try:
            reply = model.ask(_build(request, wanted, way, sent), timeout_s=timeout_s)
        except RequestRefused:
            if way == ways[-1]:
                raise
            model.refused.add(way)
            continue
        except AskFailed as failure:
            raise _with_usage(failure, usage) from failure
        usage = add_usage(usage, {**reply.usage, "turns": 1})
        got = ObjectReply(_read(reply, wanted.schema), reply, way, usage)
        if got.value is None and way != "plain":
            # The endpoint accepted the way and ignored it.
            model.refused.add(way)
        problem = "" if check is None else check(got.value)
        if not problem:
            return got
    raise AskFailed("bad-output", problem, partial=AdapterAnswer(text="", usage=usage))


def _build(
    request: ModelRequest, wanted: WantedObject, way: Way, sent: Mapping[str, Any]
) -> ModelRequest:
    written = (
        "Answer with one JSON object, and nothing else: no words around it, no code fence. "
        f"It has to fit this JSON Schema:\n\n{json.dumps(sent, ensure_ascii=False)}"
    )
    told = _join(request.system, wanted.guide)
    match way:
        case "schema":
            return request._replace(system=told, shape=ObjectShape(sent))
        case "tool":
            tool = ModelTool(SUBMIT, wanted.description, sent)
            return request._replace(system=told, tools=(tool,), forced=SUBMIT)
        case "json":
            return request._replace(system=_join(told, written), shape=ObjectShape(None))
    return request._replace(system=_join(told, written)) if wanted.is_told_in_words else request


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _read(reply: ModelReply, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    for call in reply.said.calls:
        if call.name == SUBMIT and call.arguments is not None:
            return _restored(call.arguments, schema)
    value = read_object(reply.said.text)
    return None if value is None else _restored(value, schema)


def _restored(value: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    restored = restore(value, schema)
    return restored if isinstance(restored, dict) else value


def _with_usage(failure: AskFailed, usage: Mapping[str, Any]) -> AskFailed:
    if usage:
        partial = failure.partial or AdapterAnswer(text="")
        spent = add_usage(dict(usage), dict(partial.usage))
        failure.partial = replace(partial, usage=spent)
    return failure
