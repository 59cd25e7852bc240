"""The words of Anthropic's messages."""

from typing import Any

import pytest
from agentkit.endpoints import endpoint
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.anthropic import build_body, build_headers, build_url, parse_reply
from uwf_git.agentkit.llm.messages import (
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelTool,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)

BASE = "http://model.example"
LS = ModelTool("ls", "Lists.", {"type": "object"})
CALLED = ModelMessage(
    "", (ToolCall("c", "ls", {}),), {"role": "assistant", "content": [{"signed": "x"}]}
)


def body(request: ModelRequest, **given: Any) -> dict[str, Any]:
    found = endpoint(BASE, api="anthropic", **{"max_tokens": 99, **given})
    return build_body(found, request, limit_name="max_tokens")


@pytest.mark.parametrize("base", [BASE, f"{BASE}/", f"{BASE}/v1", f"{BASE}/v1/messages"])
def test_the_path_is_added_to_the_base_once(base: str) -> None:
    assert build_url(endpoint(base, api="anthropic")) == f"{BASE}/v1/messages"


def test_the_version_is_always_sent_and_the_key_where_there_is_one() -> None:
    version = {"anthropic-version": "2023-06-01"}
    assert build_headers(endpoint(BASE)) == version
    assert build_headers(endpoint(BASE, key="k")) == version | {"x-api-key": "k"}


def test_a_plain_question_has_a_limit() -> None:
    assert body(ModelRequest((UserMessage("hi"),), "be brief"), temperature=1.0) == {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "system": "be brief",
        "temperature": 1.0,
    }


def test_what_came_of_calls_is_one_message_of_ours() -> None:
    results = ToolResults((ToolResult("c", ""), ToolResult("d", "gone", is_error=True)), "go on")
    sent = body(ModelRequest((UserMessage("hi"), CALLED, results), tools=(LS,)))
    assert sent["messages"][1:] == [
        CALLED.echo,
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": "(nothing)",
                    "is_error": False,
                },
                {"type": "tool_result", "tool_use_id": "d", "content": "gone", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    assert "tool_choice" not in sent


def test_a_tool_can_be_forced() -> None:
    sent = body(ModelRequest((UserMessage("hi"),), tools=(LS,), forced="ls"))
    schema = {"type": "object"}
    assert sent["tools"] == [{"name": "ls", "description": "Lists.", "input_schema": schema}]
    assert sent["tool_choice"] == {"type": "tool", "name": "ls"}


def test_tools_that_were_called_are_named_but_cannot_be_called_any_more() -> None:
    results = ToolResults((ToolResult("c", "a.txt"),))
    sent = body(ModelRequest((UserMessage("hi"), CALLED, results)))
    assert [tool["name"] for tool in sent["tools"]] == ["ls"]
    assert sent["tool_choice"] == {"type": "none"}


def test_text_and_calls_are_read_and_kept_as_they_came() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "."}},
    ]
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 30,
        "output_tokens": 7,
    }
    document = {"content": blocks, "stop_reason": "tool_use", "model": "m-1", "usage": usage}
    reply = parse_reply(document)
    assert reply is not None
    assert reply.said.text == "I look."
    assert reply.said.calls == (ToolCall("t", "ls", {"path": "."}),)
    assert reply.said.echo == {"role": "assistant", "content": blocks}
    assert reply.usage == {"inputTokens": 37, "outputTokens": 7, "cachedInputTokens": 30}


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("max_tokens", "too-long"),
        ("model_context_window_exceeded", "too-long"),
        ("refusal", "filtered"),
        ("end_turn", "end"),
        (None, "end"),
    ],
)
def test_why_it_stopped_is_read(reason: str | None, stop: str) -> None:
    reply = parse_reply({"content": [], "stop_reason": reason})
    assert reply is not None
    assert reply.stop == stop


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.fixed_dictionaries({}, optional={"content": JSON, "usage": JSON, "stop_reason": JSON}))
def test_any_document_is_a_reply_or_none(document: dict[str, Any]) -> None:
    assert isinstance(parse_reply(document), ModelReply | None)
