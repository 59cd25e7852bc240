"""The loop: turns, limits, and what ends it."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from agentkit.endpoints import Odd, Served, chat, model, odd, scripted
from agentkit.traces import find_odd

from uwf_git.agentkit.adapters.model import Loop, LoopLimits, Repeats
from uwf_git.agentkit.llm.endpoint import Api
from uwf_git.agentkit.llm.messages import ToolCall, ToolResult, ToolResults, UserMessage
from uwf_git.agentkit.llm.tools import Surroundings, build_toolbox, open_work_folder
from uwf_git.agentkit.turn import AdapterAnswer, AskFailed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
}
DONE = {"content": "Done.", "meta": {"ok": True, "why": None}}


def loop(served: Served, place: Path, *, api: Api = "openai", **given: Any) -> Loop:
    limits = LoopLimits(
        given.pop("turns", 9),
        given.pop("tokens", 10**6),
        time.monotonic() + given.pop("left_s", 60),
    )
    return Loop(
        model=model(served.url, api=api, max_tokens=99),
        toolbox=build_toolbox(
            open_work_folder(str(place)), thread=None, around=given.pop("around", None)
        ),
        limits=limits,
        system="Work.",
        schema=given.pop("schema", SCHEMA),
        messages=(UserMessage("Do it."),),
    )


def run(place: Path, *replies: Odd, **given: Any) -> tuple[AdapterAnswer, list[dict[str, Any]]]:
    """Run a loop against *replies*; return its end, and all that it has asked."""
    with odd(*replies) as served:
        return loop(served, place, **given).run(), served.asked


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "args": arguments}


def calls(*named: tuple[str, Any], text: str | None = None) -> Odd:
    made = [
        {"id": f"c{number}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(named)
    ]
    return Odd(body=chat(text, tool_calls=made))


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_model_works_and_hands_in_its_answer(tmp_path: Path, api: Api) -> None:
    turns = (
        use("write_file", path="a", content="one"),
        use("patch_file", path="a", old="one", new="two"),
        use("submit_result", **DONE),
    )
    with scripted(*turns) as served:
        ended = loop(served, tmp_path, api=api).run()
    assert (tmp_path / "a").read_text() == "two"
    assert (ended.text, ended.structured) == ("Done.", {"ok": True})
    assert ended.usage["turns"] == 3
    assert ended.usage["inputTokens"] == 33
    tools = [event for event in ended.trace if event["type"] == "tool"]
    assert [(event["name"], event["ok"]) for event in tools] == [
        ("write_file", True),
        ("patch_file", True),
        ("submit_result", True),
    ]
    assert tools[0]["input"] == {"path": "a", "content": "one"}
    assert find_odd(ended.trace) == []


def test_a_turn_of_words_alone_is_the_answer(tmp_path: Path) -> None:
    with scripted({"text": "I will not.", "plain": True}) as served:
        ended = loop(served, tmp_path).run()
    assert (ended.text, ended.structured) == ("I will not.", None)


def test_several_calls_of_one_turn_are_run_in_order(tmp_path: Path) -> None:
    first = calls(
        ("write_file", {"path": "a", "content": "x"}), ("read_file", {"path": "a"}), text="I begin."
    )
    ended, asked = run(tmp_path, first, calls(("submit_result", DONE)))
    told = [message["content"] for message in asked[1]["messages"][-2:]]
    assert told == ["wrote the new file a, 1 lines", "x"]
    assert {"type": "message", "text": "I begin."} in ended.trace


def test_fields_that_do_not_fit_are_not_accepted_and_may_be_handed_in_anew(tmp_path: Path) -> None:
    bad = calls(("submit_result", {"content": "x", "meta": {"ok": "yes"}}))
    ended, asked = run(tmp_path, bad, calls(("submit_result", [1])), calls(("submit_result", DONE)))
    assert ended.structured == {"ok": True}
    assert "error: not accepted: ok: 'yes'" in asked[1]["messages"][-1]["content"]
    assert "`content` and `meta`" in asked[2]["messages"][-1]["content"]


def test_answers_that_are_never_accepted_are_not_paid_for_without_end(tmp_path: Path) -> None:
    bad = calls(("submit_result", {"content": "x", "meta": {"ok": "yes"}}))
    ended, asked = run(tmp_path, bad, turns=50)
    assert (len(asked), ended.structured) == (4, {"ok": "yes"})
    assert "tools" not in asked[3]


def test_answer_beside_a_refused_one_or_a_repeated_call_is_accepted(tmp_path: Path) -> None:
    bad, listing = ("submit_result", {"ok": "yes"}), ("list_files", dict[str, str]())
    with odd(calls(bad, ("submit_result", DONE))) as served:
        assert loop(served, tmp_path).run().structured == {"ok": True}
    again = calls(listing), calls(listing), calls(listing, ("submit_result", DONE))
    with odd(*again) as served:
        assert loop(served, tmp_path).run().structured == {"ok": True}
    assert len(served.asked) == 3


def test_answer_that_fits_beside_failed_calls_is_no_repetition(tmp_path: Path) -> None:
    fails = [calls(("submit_result", DONE), ("read_file", {"path": name})) for name in "abcd"]
    ended, asked = run(tmp_path, *fails, calls(("submit_result", DONE)))
    assert all("tools" in body for body in asked)
    assert (len(asked), ended.structured) == (5, {"ok": True})


def test_what_is_called_beside_the_answer_is_done_first_and_has_to_succeed(tmp_path: Path) -> None:
    submit = ("submit_result", DONE)
    fails = calls(submit, ("patch_file", {"path": "a", "old": "x", "new": "y"}))
    ended, asked = run(
        tmp_path, fails, calls(submit, ("write_file", {"path": "a", "content": "x"}))
    )
    told = {each["tool_call_id"]: each["content"] for each in asked[1]["messages"][-2:]}
    assert "not accepted: see the results of your other calls" in told["c0"]
    assert "a: no such file" in told["c1"]
    assert ended.structured == {"ok": True}
    assert (tmp_path / "a").read_text() == "x"


@pytest.mark.parametrize("content", ["# Report", ""])
def test_object_that_is_said_and_not_handed_in_is_the_answer(tmp_path: Path, content: str) -> None:
    ended, _ = run(tmp_path, Odd(body=chat(json.dumps({**DONE, "content": content}))))
    assert (ended.text, ended.structured) == (content, {"ok": True})


def test_object_that_a_text_quotes_is_not_the_answer(tmp_path: Path) -> None:
    said = '---\nok: true\n---\nThe example is {"ok": false} in the docs.'
    ended, _ = run(tmp_path, Odd(body=chat(said)))
    assert (ended.text, ended.structured) == (said, None)


def test_after_the_last_turn_it_is_asked_for_the_answer_without_tools(tmp_path: Path) -> None:
    listing = calls(("list_files", {}))
    ended, asked = run(tmp_path, listing, listing, Odd(body=chat(json.dumps(DONE))), turns=2)
    assert ended.structured == {"ok": True}
    assert "tools" not in asked[2]
    assert asked[2]["messages"][-1]["content"].startswith("No more tools")


def test_before_the_tokens_are_spent_it_is_asked_for_the_answer(tmp_path: Path) -> None:
    ended, asked = run(
        tmp_path, calls(("list_files", {})), Odd(body=chat(json.dumps(DONE))), tokens=53
    )
    assert ended.structured == {"ok": True}
    assert len(asked) == 2
    assert "tools" not in asked[1]


def test_a_model_that_goes_in_circles_is_warned_and_then_asked_for_the_answer(
    tmp_path: Path,
) -> None:
    circle = [calls(("list_files", {}))] * 5
    ended, asked = run(tmp_path, *circle, Odd(body=chat(json.dumps(DONE))), turns=50)
    assert len(asked) == 6
    assert ended.structured == {"ok": True}
    assert "this very call before" in asked[3]["messages"][-1]["content"]


def test_when_the_time_is_over_the_work_so_far_is_reported(tmp_path: Path) -> None:
    looks = calls(("list_files", {}), text="I look.")
    with odd(looks, Odd(hangs=True)) as served, pytest.raises(AskFailed) as caught:
        loop(served, tmp_path, left_s=0.5).run()
    assert caught.value.kind == "timed-out"
    partial = caught.value.partial
    assert partial is not None
    assert partial.text == "I look."
    assert partial.usage["inputTokens"] == 11
    assert [event["type"] for event in partial.trace] == ["turn", "message", "tool"]


def test_a_failure_of_the_endpoint_keeps_what_was_spent(tmp_path: Path) -> None:
    cut = Odd(body=chat("half", finish_reason="length"))
    with odd(calls(("list_files", {})), cut) as served, pytest.raises(AskFailed) as caught:
        loop(served, tmp_path).run()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"
    assert caught.value.partial.usage["inputTokens"] == 22


def test_a_conversation_that_is_too_long_loses_its_older_results(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 5_000)
    reading = [calls(("read_file", {"path": "a", "first_line": n})) for n in (1, 0)]
    listing = calls(("list_files", {}))
    full = Odd(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
    ended, asked = run(tmp_path, *reading, listing, full, calls(("submit_result", DONE)))
    assert ended.structured == {"ok": True}
    results = [message["content"] for message in asked[4]["messages"] if message["role"] == "tool"]
    assert "left out to make room" in results[0]
    assert results[1] == "x" * 5_000
    assert any(event["type"] == "warning" for event in ended.trace)


def test_without_a_schema_the_words_are_the_answer(tmp_path: Path) -> None:
    ended, asked = run(
        tmp_path, calls(("list_files", {})), Odd(body=chat("It is empty.")), schema=None, turns=1
    )
    assert ended.text == "It is empty."
    assert "submit_result" not in str(asked[0])


def test_answering_now_offers_no_tools(tmp_path: Path) -> None:
    ended, asked = run(tmp_path, Odd(body=chat(json.dumps(DONE))), turns=0)
    assert ended.structured == {"ok": True}
    assert "tools" not in asked[0]
    assert asked[0]["messages"][-1]["content"] == "Do it."


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("id", name, arguments)


def test_a_check_may_fail_again_after_each_change(tmp_path: Path) -> None:
    edits = [
        use("patch_file", path="a", old="0", new="1"),
        *(use("shell", command=f"echo {number} > a") for number in range(2, 5)),
    ]
    (tmp_path / "a").write_text("0")
    turns = [turn for edit in edits for turn in (use("shell", command="grep x a"), edit)]
    around = Surroundings(os.environ, None, 60)
    with scripted(*turns, use("submit_result", **DONE)) as served:
        ended = loop(served, tmp_path, around=lambda: around).run()
    assert [event for event in ended.trace if event.get("ok") is False] == []


@pytest.mark.parametrize("may_change", [True, False])
def test_commands_in_turns_that_change_nothing_are_a_circle(*, may_change: bool) -> None:
    repeats = Repeats()
    for number, name in enumerate(("make", "git diff") * 6):
        result = "as ever" if may_change or name == "make" else f"read {number}"
        if not repeats.blocks(call(name)):
            repeats.add(call(name), result, may_change=may_change)
    assert repeats.is_stuck


def turn(text: str) -> ToolResults:
    return ToolResults((ToolResult("c", text), ToolResult("d", "short", is_error=True)), "note")
