"""Conversations that go on."""

import pytest

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.conversation import Conversations, go_on
from uwf_git.agentkit.llm.messages import (
    Message,
    ModelMessage,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)

SAID = ModelMessage("yes", (), {})


def test_a_conversation_begins_with_the_prompt_and_a_name_of_its_own() -> None:
    conversations = Conversations("llm")
    one, messages = conversations.begin("hi", None)
    other, _ = conversations.begin("hi", None)
    assert messages == (UserMessage("hi"),)
    assert one != other
    assert one.startswith("llm-")


def test_a_conversation_that_was_kept_goes_on() -> None:
    conversations = Conversations("llm")
    session, messages = conversations.begin("hi", None)
    conversations.keep(session, (*messages, SAID))
    assert conversations.begin("and?", session) == (
        session,
        (UserMessage("hi"), SAID, UserMessage("and?")),
    )


def test_a_conversation_of_another_process_is_not_made_up() -> None:
    with pytest.raises(AskFailed) as caught:
        Conversations("llm").begin("and?", "llm-0123")
    assert caught.value.kind == "no-session"
    assert "llm-0123" in caught.value.message


def test_unanswered_calls_are_answered_first() -> None:
    said = ModelMessage("", (ToolCall("a", "submit_result", {}), ToolCall("b", "x", None)), {})
    messages: tuple[Message, ...] = (UserMessage("hi"), said)
    results = tuple(ToolResult(each, "Received; see below.") for each in "ab")
    assert go_on(messages, "again") == (*messages, ToolResults(results, "again"))
