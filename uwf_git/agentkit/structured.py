"""Asking a model for an object, by the strictest way that its endpoint takes.

Owns: the ways, their order, and which of them an endpoint has turned out not to take.
Knows nothing of: roles, who wants the object.
Always true: the next way is taken only when the endpoint refused the last one, or (where the
caller wants the object and nothing else) gave nothing that will do; what every question cost is
counted.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.adapter import Answer, NoAnswer
from uwf_git.agentkit.model_call import Model
from uwf_git.agentkit.model_errors import RequestRefused
from uwf_git.agentkit.model_words import (
    ModelReply,
    ModelRequest,
    ObjectShape,
    Tool,
    read_object,
)
from uwf_git.agentkit.strict_schema import derive_strict, restore
from uwf_git.agentkit.wanted import Wanted
from uwf_git.model.usage import add_usage

__all__ = ["SUBMIT", "Got", "Wanted", "Way", "ask_for_object"]

Way = Literal["schema", "tool", "json", "plain"]
"""``response_format`` with a strict schema; one tool that has to be called; ``response_format``
with any object, the schema in words; in words alone."""

SUBMIT = "submit_result"

_WAYS: dict[str, tuple[Way, ...]] = {
    "openai": ("schema", "tool", "json", "plain"),
    "anthropic": ("tool", "plain"),
}


class Got(NamedTuple):
    """What came."""

    value: dict[str, Any] | None
    """None: the reply holds no object."""

    reply: ModelReply
    way: Way
    usage: Mapping[str, Any]
    """Of all questions together."""


def ask_for_object(
    model: Model,
    request: ModelRequest,
    wanted: Wanted,
    *,
    check: Callable[[dict[str, Any] | None], str] | None = None,
    timeout_s: float | None = None,
) -> Got:
    """Ask *model* for an object.

    Without *check*, the first reply is what came, object or not. With it (it tells what is wrong
    with an object, or "") a reply that will not do is asked for anew, by the next way.

    Raises:
        NoAnswer: no way led to a reply, or to one that will do.
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
        except NoAnswer as failure:
            raise _with_usage(failure, usage) from failure
        usage = add_usage(usage, {**reply.usage, "turns": 1})
        got = Got(_read(reply, wanted.schema), reply, way, usage)
        if got.value is None and way != "plain":
            # It let the wish pass, and did not see to it.
            model.refused.add(way)
        problem = "" if check is None else check(got.value)
        if not problem:
            return got
    raise NoAnswer("bad-output", problem, partial=Answer(text="", usage=usage))


def _build(
    request: ModelRequest, wanted: Wanted, way: Way, sent: Mapping[str, Any]
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
            tool = Tool(SUBMIT, wanted.description, sent)
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


def _with_usage(failure: NoAnswer, usage: Mapping[str, Any]) -> NoAnswer:
    """Let *failure* tell of what was spent before it, too."""
    if usage:
        partial = failure.partial or Answer(text="")
        spent = add_usage(dict(usage), dict(partial.usage))
        failure.partial = replace(partial, usage=spent)
    return failure
