"""The words of chat completions."""

from typing import Any

import pytest
from agentkit.endpoints import chat, endpoint
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.messages import (
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelTool,
    ObjectShape,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)
from uwf_git.agentkit.llm.openai import (
    build_body,
    build_headers,
    build_url,
    parse_reply,
    wants_other_limit,
)

BASE = "http://model.example/v1"


def body(request: ModelRequest, **given: Any) -> dict[str, Any]:
    return build_body(endpoint(BASE, **given), request, limit_name="max_tokens")


def parsed(document: dict[str, Any]) -> ModelReply:
    reply = parse_reply(document)
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (BASE, f"{BASE}/chat/completions"),
        (f"{BASE}/", f"{BASE}/chat/completions"),
        (f"{BASE}/chat/completions", f"{BASE}/chat/completions"),
        (f"{BASE}?api-version=3", f"{BASE}/chat/completions?api-version=3"),
    ],
)
def test_the_path_is_added_to_the_base_once(base: str, url: str) -> None:
    assert build_url(endpoint(base)) == url


def test_the_key_is_a_bearer_token_and_no_key_is_none() -> None:
    assert build_headers(endpoint(BASE, key="k")) == {"Authorization": "Bearer k"}
    assert build_headers(endpoint(BASE)) == {}


def test_a_plain_question_says_no_more_than_it_must() -> None:
    assert body(ModelRequest((UserMessage("hi"),))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_settings_are_sent_where_they_are_set() -> None:
    sent = body(ModelRequest((UserMessage("hi"),), "be brief"), max_tokens=9, temperature=0.0)
    assert (sent["max_tokens"], sent["temperature"]) == (9, 0.0)
    assert sent["messages"][0] == {"role": "system", "content": "be brief"}


def test_calls_and_what_came_of_them_go_back_as_they_came() -> None:
    echo = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "signed": "x"}]}
    said = ModelMessage("", (ToolCall("c", "ls", {}),), echo)
    results = ToolResults(
        (ToolResult("c", "a.txt"), ToolResult("d", "gone", is_error=True)), "go on"
    )
    sent = body(ModelRequest((UserMessage("hi"), said, results)))
    assert sent["messages"][1:] == [
        echo,
        {"role": "tool", "tool_call_id": "c", "content": "a.txt"},
        {"role": "tool", "tool_call_id": "d", "content": "error: gone"},
        {"role": "user", "content": "go on"},
    ]


def test_a_tool_can_be_forced() -> None:
    tool = ModelTool("ls", "Lists.", {"type": "object"})
    sent = body(ModelRequest((UserMessage("hi"),), tools=(tool,), forced="ls"))
    function = {"name": "ls", "description": "Lists.", "parameters": {"type": "object"}}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "ls"}}


def test_an_object_is_asked_for_strictly_or_in_any_shape() -> None:
    strict = body(ModelRequest((UserMessage("hi"),), shape=ObjectShape({"type": "object"})))
    assert strict["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "result", "strict": True, "schema": {"type": "object"}},
    }
    loose = body(ModelRequest((UserMessage("hi"),), shape=ObjectShape(None)))
    assert loose["response_format"] == {"type": "json_object"}


def test_a_text_is_read_with_its_usage() -> None:
    document = chat("hello")
    document["usage"] |= {
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.25,
    }
    reply = parsed(document)
    assert reply.said == ModelMessage("hello", (), {"role": "assistant", "content": "hello"})
    assert (reply.stop, reply.model) == ("end", "m-1")
    assert reply.usage == {
        "inputTokens": 11,
        "outputTokens": 7,
        "cachedInputTokens": 5,
        "reasoningTokens": 3,
        "costUsd": 0.25,
    }


def test_unreported_usage_is_left_out() -> None:
    assert parsed(chat() | {"usage": None}).usage == {}


def test_text_in_parts_and_a_refusal_are_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert parsed({"choices": [{"message": {"content": parts}}]}).said.text == "ab"
    assert parsed(chat(None, refusal="I will not.")).said.text == "I will not."


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ({"path": "a"}, {"path": "a"}),
        ("", {}),
        (None, {}),
        ("{path: a}", None),
        ("[1]", None),
    ],
)
def test_a_call_is_read_however_its_arguments_are_written(
    arguments: object, read: dict[str, Any] | None
) -> None:
    calls = [{"function": {"name": "ls", "arguments": arguments}}]
    reply = parsed(chat(None, tool_calls=calls, finish_reason="tool_calls"))
    assert reply.said.calls == (ToolCall("call_0", "ls", read),)
    assert reply.said.echo["tool_calls"] == calls


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", "too-long"), ("content_filter", "filtered"), (None, "end")]
)
def test_why_it_stopped_is_read(finish: str | None, stop: str) -> None:
    assert parsed(chat("x", finish_reason=finish)).stop == stop


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"choices": [1]}, {"choices": "x"}])
def test_what_is_no_reply_is_none(document: dict[str, Any]) -> None:
    assert parse_reply(document) is None


def test_the_newer_name_of_the_limit_is_found_in_the_refusal() -> None:
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    assert wants_other_limit(told, "max_tokens") == "max_completion_tokens"
    assert wants_other_limit(told, "max_completion_tokens") is None
    assert wants_other_limit("no such model", "max_tokens") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.fixed_dictionaries({}, optional={"choices": st.lists(JSON), "usage": JSON}), JSON)
def test_any_document_is_a_reply_or_none(document: dict[str, Any], message: Any) -> None:
    assert isinstance(parse_reply(document), ModelReply | None)
    assert isinstance(parse_reply({"choices": [{"message": message}]}), ModelReply | None)
