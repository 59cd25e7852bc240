import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agentkit.traces import find_odd
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.adapters.acp import (
    AcpClient,
    AcpTurn,
    RequestFailed,
    WaitingEnded,
    WaitLimits,
)
from uwf_git.agents.nested import StdioProcess

Talk = Callable[..., AcpClient]

# Says the lines that it was given, one for each that it reads, and then what it has read.
AGENT = """
import json, sys
for line in json.loads(sys.argv[1]):
    sys.stdin.readline()
    print(line, flush=True)
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
        "update": {"read": json.loads(line)}}}), flush=True)
"""


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """Begin to talk with an agent that says these lines."""
    started: list[StdioProcess] = []

    def begin(*lines: Any) -> AcpClient:
        told = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        argv = (sys.executable, "-c", AGENT, json.dumps(told))
        started.append(StdioProcess(argv, dict(os.environ), str(tmp_path)))
        return AcpClient(started[-1])

    yield begin
    for each in started:
        each.close()


def message(**parts: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **parts}


def test_results_may_come_in_any_order(talk: Talk) -> None:
    client = talk(message(id=2, result={"second": True}), message(id=1, result={}))
    client.notify("early", {}, WaitLimits())

    assert client.request("a", {}, WaitLimits(20)) == {}
    assert client.has_result()
    assert client.request("b", {}, WaitLimits(20)) == {"second": True}
    assert not client.has_result()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"code": -32000, "message": "log in"}, "log in"),
        ({"code": -32000, "message": "no", "data": {"details": "really"}}, "no: really"),
        ({"code": -32000}, "an error without a message"),
    ],
)
def test_error_is_reported(error: dict[str, Any], told: str, talk: Talk) -> None:
    with pytest.raises(RequestFailed, match=told) as caught:
        talk(message(id=1, error=error)).request("x", {}, WaitLimits(20))
    assert caught.value.code == -32000


def test_batch_is_taken_apart(talk: Talk) -> None:
    client = talk(json.dumps([message(id=7, result={}), message(id=1, result={"a": 1})]))

    assert client.request("x", {}, WaitLimits(20)) == {"a": 1}


def test_request_of_the_agent_is_answered(talk: Talk) -> None:
    asked = message(id="q", method="session/request_permission", params={"options": []})
    client = talk(asked, message(id=9, method=5, params=[]))
    seen: list[dict[str, Any]] = []
    client.on_update = seen.append
    client.notify("a", {}, WaitLimits())
    client.notify("b", {}, WaitLimits())
    while len(seen) < 2:
        client.listen(WaitLimits(20))

    answers = [each["read"] for each in seen]
    assert answers[0] == message(id="q", result={"outcome": {"outcome": "cancelled"}})
    assert (answers[1]["id"], answers[1]["error"]["code"]) == (9, -32601)


def test_waiting_ends_when_we_are_to_end(talk: Talk) -> None:
    limits = WaitLimits(signals=[15])
    with pytest.raises(WaitingEnded) as caught:
        talk().request("x", {}, limits)
    assert caught.value.why == "interrupted"


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


def test_what_is_said_and_done_is_shown_as_it_comes() -> None:
    log: list[Any] = []
    turn = AcpTurn(say=log.append)
    for update in (say("a"), say("b"), call("x"), call("x")):
        turn.take(update)

    told = [(each["type"], each.get("text") or each.get("name")) for each in log]
    assert told == [("piece", "a"), ("piece", "b"), ("tool", "x")]


def test_call_is_one_event_however_often_it_is_reported() -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "failed"}
    answer = turn_of(call("x"), update | {"rawOutput": {"error": "no"}}).build_answer()

    assert answer.trace == (
        {"type": "tool", "name": "x", "input": None, "output": {"error": "no"}, "ok": False},
    )
    assert find_odd(answer.trace) == []


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
