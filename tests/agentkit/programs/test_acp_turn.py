from typing import Any

import pytest
from agentkit.traces import find_odd
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.programs.acp_turn import AcpTurn


def say(text: str, **more: Any) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "content": content, **more}


def call(name: str) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": name, "title": name}


def turn_of(*updates: dict[str, Any]) -> AcpTurn:
    turn = AcpTurn()
    for update in updates:
        turn.take(update)
    return turn


def test_messages_are_separated_by_the_calls_between_them() -> None:
    answer = turn_of(say("a"), say("b"), call("x"), say("c"), call("y"), say("d")).build_answer()

    assert answer.text == "d"
    assert [each["text"] for each in answer.trace if each["type"] == "message"] == ["ab", "c"]


def test_messages_with_an_id_are_separated_by_it() -> None:
    parts = [say("a", messageId="1"), say("c", messageId="2"), say("d", messageId="2")]

    assert turn_of(*parts).build_answer().text == "cd"


def test_call_after_the_last_word_does_not_take_it_away() -> None:
    assert turn_of(say("done"), call("x")).build_answer().text == "done"


def test_call_is_one_event_however_often_it_is_reported() -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "failed"}
    answer = turn_of(call("x"), update | {"rawOutput": {"error": "no"}}).build_answer()

    assert answer.trace == (
        {"type": "tool", "name": "x", "input": None, "output": {"error": "no"}, "ok": False},
    )
    assert find_odd(answer.trace) == []


def test_cost_is_what_the_session_has_cost_since() -> None:
    cost = {"sessionUpdate": "usage_update", "cost": {"amount": 0.3, "currency": "USD"}}

    turn = turn_of(cost)
    turn.cost_before = 0.1

    assert turn.build_answer().usage == {"costUsd": 0.2}


def test_turn_goes_on_until_its_end_is_reported() -> None:
    turn = turn_of({"sessionUpdate": "state_update", "state": "running"})
    assert turn.stop_reason is None
    turn.end({})
    assert turn.stop_reason is None
    turn.end({"stopReason": "end_turn"})
    assert turn.stop_reason == "end_turn"


def test_trace_has_an_end() -> None:
    turn = turn_of(*(call(str(number)) for number in range(6_000)))

    assert len(turn.build_answer().trace) == 5_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "cost", "amount"]), inner)
    ),
    max_leaves=8,
)
KEYS = [
    "content", "messageId", "toolCallId", "title", "kind", "status", "rawInput", "rawOutput",
    "cost", "state", "stopReason", "usage", "_meta",
]  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    ["agent_message", "agent_message_chunk", "tool_call", "usage_update", "state_update", "plan"],
)
@given(update=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5))
def test_no_update_is_an_error(kind: str, update: dict[str, Any]) -> None:
    turn = turn_of({**update, "sessionUpdate": kind})
    turn.end(update)

    assert isinstance(turn.build_answer().text, str)
