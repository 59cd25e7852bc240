"""Objects in a model's words."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agentkit.endpoints import endpoint
from agentkit.extraction.test_strict_schema import JSON
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.endpoint import Api
from uwf_git.agentkit.llm.http_client import HttpReply, NoReply
from uwf_git.agentkit.llm.messages import (
    Message,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelTool,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    build_body,
    build_headers,
    build_url,
    go_on,
    parse_reply,
    read_object,
    wants_other_limit,
)
from uwf_git.agentkit.llm.model import explain_no_reply, read_document, refuse_shape
from uwf_git.agentkit.turn import AskFailed


@pytest.mark.parametrize(
    "text",
    ["", "no object", "[1]", '{"a": 1} and {"b": 2}', '{"a": NaN}', '{"a": 1, "a": 2}', "}{", "{"],
)
def test_what_is_no_single_object_is_none(text: str) -> None:
    assert read_object(text) is None


SAFE = st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)


@given(st.dictionaries(st.text(), SAFE | st.text() | st.none()), st.sampled_from("\n x"))
def test_every_object_is_read_back(value: dict[str, object], around: str) -> None:
    assert read_object(around + json.dumps(value) + around) == value


@given(st.text())
def test_any_text_is_an_object_or_none(text: str) -> None:
    assert isinstance(read_object(text), dict | None)


def test_unanswered_calls_are_answered_first() -> None:
    said = ModelMessage("", (ToolCall("a", "submit_result", {}), ToolCall("b", "x", None)), {})
    messages: tuple[Message, ...] = (UserMessage("hi"), said)
    results = tuple(ToolResult(each, "Received; see below.") for each in "ab")
    assert go_on(messages, "again") == (*messages, ToolResults(results, "again"))


# The words of both APIs, as written down: what is sent, and what replies and refusals mean.


Golden = Callable[[str, str], None]

APIS: tuple[Api, ...] = ("openai", "anthropic")
MADE_UP = Path(__file__).parent / "made_up"
SITE = "http://model.example"
BASE = f"{SITE}/v1"
PATHS = ("", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/messages", "/v1?api-version=3")
NOW_S = 1_760_000_000.0
KEYED = endpoint("https://api.example.com/v1", key="sk-geheim")

HI = UserMessage("hi")
LS = ModelTool("ls", "Lists.", {"type": "object"})
CALLED = ModelMessage(
    "", (ToolCall("c", "ls", {}),), {"role": "assistant", "content": None, "signed": "x"}
)
CAME = ToolResults((ToolResult("c", ""), ToolResult("d", "gone", is_error=True)), "go on")
REQUESTS = {
    "plain": ModelRequest((HI,)),
    "with a system prompt": ModelRequest((HI,), "be brief"),
    "calls and what came of them": ModelRequest((HI, CALLED, CAME), tools=(LS,)),
    "calls that are over": ModelRequest((HI, CALLED, ToolResults((ToolResult("c", "a.txt"),)))),
    "forced": ModelRequest((HI,), tools=(LS,), forced="ls"),
    "object of a shape": ModelRequest((HI,), shape={"type": "object"}),
    "object of any shape": ModelRequest((HI,), shape=True),
}


@pytest.mark.parametrize("name", APIS)
def test_requests_are_sent_as_ever(name: Api, golden: Golden) -> None:
    bases = [SITE + path for path in PATHS]
    told = [f"{base}: {build_url(endpoint(base, api=name))}\n" for base in bases]
    told += [
        f"key {key}: {build_headers(endpoint(BASE, api=name, key=key))}\n" for key in (None, "k")
    ]
    for case, request in REQUESTS.items():
        for settings in ({"max_tokens": 99}, {"max_tokens": 9, "temperature": 0.0}):
            at = endpoint(BASE, api=name, **settings)
            told.append(f"{case}: {json.dumps(build_body(at, request, limit_name='most'))}\n")

    golden(f"llm/{name}.requests.txt", "".join(told))


@pytest.mark.parametrize("name", APIS)
def test_replies_are_read_as_ever(name: Api, golden: Golden) -> None:
    told = []
    for case, document in json.loads((MADE_UP / f"{name}.json").read_text()).items():
        reply = parse_reply(endpoint(BASE, api=name), document)
        told += [f"{case}\n", *(tell(reply) if reply else ["    no reply\n"])]

    golden(f"llm/{name}.replies.txt", "".join(told))


def tell(reply: ModelReply) -> Iterator[str]:
    stop = f"broken ({reply.why})" if reply.stop == "broken" else reply.stop
    yield f"    {stop}, by {reply.model or 'nobody'}: {reply.said.text!r}\n"
    yield from (f"    calls {call}\n" for call in reply.said.calls)
    yield f"    usage: {json.dumps(reply.usage)}\n"
    yield f"    echo: {json.dumps(reply.said.echo)}\n"


def test_the_newer_name_of_the_limit_is_found_in_the_refusal() -> None:
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    assert wants_other_limit(told, "max_tokens") == "max_completion_tokens"
    assert wants_other_limit(told, "max_completion_tokens") is None
    assert wants_other_limit("no such model", "max_tokens") is None


def read(status: int, body: bytes, headers: dict[str, str], *, key: str | None) -> dict[str, Any]:
    at = endpoint("https://api.example.com/v1", key=key)
    return read_document(at, HttpReply(status, headers, body), now_s=NOW_S)


def refuse(
    status: int, body: bytes, headers: dict[str, str], *, key: str | None = "sk-geheim"
) -> AskFailed | None:
    try:
        read(status, body, headers, key=key)
    except AskFailed as failure:
        return failure
    return None


def test_refusals_are_explained_as_ever(golden: Golden) -> None:
    failures = {
        case: refuse(
            given["status"],
            given.get("text", json.dumps(given.get("body", ""))).encode(),
            given.get("headers", {}),
            key=given.get("key", "sk-geheim"),
        )
        for case, given in json.loads((MADE_UP / "refusals.json").read_text()).items()
    }
    failures["nested without end"] = refuse(200, b'{"a":' + b"[" * 100_000, {})
    failures["no text"] = refuse(200, b"\xff" * 9, {"content-type": "text/html"})
    failures["another shape"] = refuse_shape(KEYED)
    for trouble in ("timed-out", "too-much", "unreachable", "unknown-host", "untrusted", "broken"):
        no_reply = NoReply(trouble, "api.example.com", "x")
        failures[f"no reply: {trouble}"] = explain_no_reply(KEYED, no_reply)

    told = []
    for case, failure in failures.items():
        assert failure is not None
        told += [f"{case}\n", f"    {type(failure).__name__} {failure.kind}: {failure.message}\n"]
        told += [f"    hint: {failure.hint}\n"] if failure.hint else []
        told += [f"    facts: {failure.facts}\n"]
    golden("llm/refusals.txt", "".join(told))


@given(st.integers(200, 599), st.binary() | st.text().map(str.encode))
def test_no_response_makes_an_error_show_the_key(status: int, body: bytes) -> None:
    for raw in (body, json.dumps({"error": {"message": f"you sent sk-geheim {body!r}"}}).encode()):
        failure = refuse(status, raw, {"location": "x", "content-type": "y"})
        told = "" if failure is None else f"{failure.message} {failure.hint} {failure.facts}"
        assert "sk-geheim" not in told
        assert failure is None or "\n" not in failure.message


PARTS = {
    "choices": st.lists(JSON | st.fixed_dictionaries({"message": JSON})),
    "content": JSON,
    "usage": JSON,
    "stop_reason": JSON,
}


@pytest.mark.parametrize("name", APIS)
@given(document=st.fixed_dictionaries({}, optional=PARTS))
def test_any_document_is_a_reply_or_none(name: Api, document: dict[str, Any]) -> None:
    assert isinstance(parse_reply(endpoint(BASE, api=name), document), ModelReply | None)
