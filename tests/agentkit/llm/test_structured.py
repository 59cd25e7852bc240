"""Asking for an object, from the strictest way down."""

import json
from typing import Any

import pytest
from agentkit.adapters.test_loop import SCHEMA
from agentkit.endpoints import Odd, chat, model, odd, scripted

from uwf_git.agentkit.ladder import WantedObject
from uwf_git.agentkit.llm.messages import ModelRequest, UserMessage
from uwf_git.agentkit.llm.model import SUBMIT, RequestRefused, ask_for_object
from uwf_git.agentkit.turn import AskFailed

WANTED = WantedObject(SCHEMA, "Hand it in.", "Guide.")
HI = ModelRequest((UserMessage("hi"),), "System.")
NO = Odd(400, {"error": {"message": "not supported"}})
GOOD = {"ok": True, "why": None}


def complain(value: dict[str, Any] | None) -> str:
    return "" if value == {"ok": True} else "that will not do"


def called(arguments: Any) -> Odd:
    function = {"name": SUBMIT, "arguments": json.dumps(arguments)}
    return Odd(body=chat(None, tool_calls=[{"id": "c", "function": function}]))


def said(value: Any) -> Odd:
    return Odd(body=chat(value if isinstance(value, str) else json.dumps(value)))


def test_a_schema_that_cannot_be_strict_begins_with_the_tool() -> None:
    wanted = WANTED._replace(schema={"type": "object", "properties": {"any": {}}})
    with scripted({"json": {"any": [1]}}) as served:
        got = ask_for_object(model(served.url), HI, wanted)
    assert (got.value, got.way) == ({"any": [1]}, "tool")
    assert served.asked[0]["tools"][0]["function"]["parameters"] == wanted.schema


@pytest.mark.parametrize(
    ("replies", "way"),
    [
        ((NO, called(GOOD)), "tool"),
        ((NO, NO, said(GOOD)), "json"),
        ((NO, NO, NO, said(GOOD)), "plain"),
    ],
)
def test_each_way_that_is_refused_leads_to_the_next(replies: tuple[Odd, ...], way: str) -> None:
    with odd(*replies) as served:
        asked = model(served.url)
        got = ask_for_object(asked, HI, WANTED)
        assert (got.value, got.way) == ({"ok": True}, way)
        again = ask_for_object(asked, HI, WANTED)
    assert again.way == way
    assert len(served.asked) == len(replies) + 1
    if way in {"json", "plain"}:
        assert "It has to fit this JSON Schema" in served.asked[-1]["messages"][0]["content"]


def test_an_endpoint_that_refuses_everything_says_why() -> None:
    with odd(NO) as served, pytest.raises(RequestRefused, match="not supported"):
        ask_for_object(model(served.url), HI, WANTED)
    assert len(served.asked) == 4


def test_answer_that_fails_the_check_is_requested_again_and_all_is_counted() -> None:
    with odd(said({"ok": 3}), called({"ok": False}), said(GOOD)) as served:
        asked = model(served.url)
        got = ask_for_object(asked, HI, WANTED, check=complain)
    assert (got.value, got.way) == ({"ok": True}, "json")
    assert got.usage == {"inputTokens": 33, "outputTokens": 21, "turns": 3}
    assert asked.refused == set()


def test_a_failure_on_the_way_tells_what_was_spent_before() -> None:
    cut = Odd(body=chat("half", finish_reason="length"))
    with odd(said({"ok": 3}), cut) as served, pytest.raises(AskFailed) as caught:
        ask_for_object(model(served.url), HI, WANTED, check=complain)
    assert caught.value.partial is not None
    assert caught.value.partial.usage["inputTokens"] == 22
