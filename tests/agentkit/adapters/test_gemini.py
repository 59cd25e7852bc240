from typing import Any

import pytest
from agentkit.adapters.reading import make_ended, read
from agentkit.adapters.replay import FRONT

from uwf_git.agentkit.adapters.gemini import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterQuestion, AskFailed

INIT = {"type": "init", "session_id": "s1", "model": "m"}
OVER = {"type": "result", "status": "success", "stats": {"input_tokens": 5, "output_tokens": 2}}


def said(text: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def used(tool: str) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "tool_name": tool, "tool_id": "t", "parameters": {"a": 1}},
        {"type": "tool_result", "tool_id": "t", "status": "error", "error": {"message": "no"}},
    ]


def test_call_gives_the_prompt_by_stdin() -> None:
    command = build(AdapterQuestion(prompt="Review it.\n"), "/nowhere")

    assert command.argv == (
        "gemini", "--output-format", "stream-json", "--skip-trust", "--approval-mode", "auto_edit",
    )  # fmt: skip
    assert command.given == b"Review it.\n"
    assert command.environ == {"GEMINI_CLI_NO_RELAUNCH": "true"}


def test_call_follows_the_settings() -> None:
    settings = {"model": "pro", "permission": "yolo", "args": "--include-directories ../lib"}

    command = build(AdapterQuestion(prompt="x", session="s1", settings=settings), "/nowhere")

    assert command.argv[4:] == (
        "--approval-mode", "yolo", "--model", "pro", "--resume", "s1",
        "--include-directories", "../lib",
    )  # fmt: skip


def test_text_comes_with_session_usage_and_trace() -> None:
    answer = read(ADAPTER, "text")

    assert (answer.text, answer.structured) == (FRONT, None)
    assert answer.session
    assert answer.usage == {"inputTokens": 22, "outputTokens": 14, "cachedInputTokens": 0}
    assert sorted(event["type"] for event in answer.trace) == ["message", "tool"]
    tool = next(event for event in answer.trace if event["type"] == "tool")
    assert (tool["name"], tool["output"], tool["ok"]) == ("run_shell_command", "hi", True)


def test_resumed_session_counts_anew() -> None:
    first, second = read(ADAPTER, "text"), read(ADAPTER, "resumed")

    assert second.session == first.session
    assert second.usage == first.usage
    assert not ADAPTER.usage_is_cumulative


def test_tool_that_was_not_offered_is_no_failure() -> None:
    assert read(ADAPTER, "refused").text == "no shell tool was offered"


def test_answer_is_what_it_said_after_its_tools() -> None:
    records = [INIT, said("I look."), *used("ls"), said("---\n"), said("a: 1\n---\n"), OVER]

    answer = ADAPTER.parse(make_ended(records))

    assert answer.text == "---\na: 1\n---\n"
    assert [event["type"] for event in answer.trace] == ["message", "tool", "message"]
    assert answer.trace[1]["ok"] is False
    assert answer.trace[1]["output"] == {"message": "no"}


def test_earlier_words_are_the_answer_if_none_came_after_the_tools() -> None:
    assert ADAPTER.parse(make_ended([INIT, said("Fine."), *used("ls"), OVER])).text == "Fine."


def test_terminated_run_keeps_what_it_had_said() -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(make_ended([INIT, said("I beg")]))

    assert caught.value.kind == "no-result"
    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.partial.session) == ("I beg", "s1")


def test_errors_on_the_way_are_reported() -> None:
    error = {"type": "error", "severity": "warning", "message": "loop detected"}

    answer = ADAPTER.parse(make_ended([INIT, said("Fi"), error, said("ne."), OVER]))

    assert answer.text == "Fine."
    assert {"type": "warning", "message": "loop detected"} in answer.trace


@pytest.mark.parametrize(
    ("records", "status", "kind"),
    [
        ([INIT, said("Fine.")], 0, "no-result"),
        ([INIT, said("Fine."), OVER], 1, "crashed"),
        ([INIT, OVER], 0, "no-result"),
        ([INIT, said("Fine."), OVER | {"status": "error"}], 0, "model-error"),
    ],
    ids=["no result", "status", "no words", "error"],
)
def test_only_a_good_result_with_words_is_an_answer(
    records: list[Any], status: int, kind: str
) -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(make_ended(records, status=status))

    assert caught.value.kind == kind
