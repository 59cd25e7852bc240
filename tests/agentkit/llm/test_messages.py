"""Objects in a model's words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.messages import (
    Conversations,
    Message,
    ModelMessage,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    go_on,
    read_object,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\ufeff\n {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Here you are:\n{"a": 1}\nI hope it helps.',
    ],
)
def test_an_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert read_object(text) == {"a": 1}


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
