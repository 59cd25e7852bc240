"""Conversations that go on."""

import pytest

from uwf_git.agentkit.adapter import NoAnswer
from uwf_git.agentkit.conversation import Conversations, go_on
from uwf_git.agentkit.model_words import Call, Message, Outcome, Outcomes, Said, Told

SAID = Said("yes", (), {})


def test_a_conversation_begins_with_the_prompt_and_a_name_of_its_own() -> None:
    conversations = Conversations("llm")
    one, messages = conversations.begin("hi", None)
    other, _ = conversations.begin("hi", None)
    assert messages == (Told("hi"),)
    assert one != other
    assert one.startswith("llm-")


def test_a_conversation_that_was_kept_goes_on() -> None:
    conversations = Conversations("llm")
    session, messages = conversations.begin("hi", None)
    conversations.keep(session, (*messages, SAID))
    assert conversations.begin("and?", session) == (session, (Told("hi"), SAID, Told("and?")))


def test_a_conversation_of_another_process_is_not_made_up() -> None:
    with pytest.raises(NoAnswer) as caught:
        Conversations("llm").begin("and?", "llm-0123")
    assert caught.value.kind == "no-session"
    assert "llm-0123" in caught.value.message


def test_calls_that_nobody_answered_are_answered_first() -> None:
    said = Said("", (Call("a", "submit_result", {}), Call("b", "x", None)), {})
    messages: tuple[Message, ...] = (Told("hi"), said)
    outcomes = tuple(Outcome(each, "Received; see below.") for each in "ab")
    assert go_on(messages, "again") == (*messages, Outcomes(outcomes, "again"))
