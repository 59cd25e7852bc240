import json
from typing import Any

import pytest
from agentkit.adapters.reading import make_ended, read, read_failure
from agentkit.adapters.replay import FRONT, SCHEMA

from uwf_git.agentkit.adapters.claude import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage

RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "result": "Fine.",
    "session_id": "s1", "num_turns": 1, "total_cost_usd": 0.5,
    "usage": {"input_tokens": 10, "cache_read_input_tokens": 200,
              "cache_creation_input_tokens": 3000, "output_tokens": 7},
}  # fmt: skip


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"content": content}, **more}


def test_call_gives_the_prompt_by_stdin() -> None:
    command = build(AdapterQuestion(prompt="Review — it.\n"), "/nowhere")

    assert command.argv == (
        "claude", "-p", "--output-format", "stream-json", "--verbose",
        "--permission-mode", "acceptEdits",
    )  # fmt: skip
    assert command.given == "Review — it.\n".encode()
    assert command.environ == {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "2"}


def test_call_follows_the_settings() -> None:
    settings = {"model": "opus", "permission": "plan", "args": "--allowedTools 'Bash(git *)'"}

    command = build(AdapterQuestion(prompt="x", session="s1", settings=settings), "/nowhere")

    assert command.argv[5:] == (
        "--permission-mode", "plan", "--model", "opus", "--resume", "s1",
        "--allowedTools", "Bash(git *)",
    )  # fmt: skip


def test_open_quote_in_the_settings_is_refused() -> None:
    with pytest.raises(BadUsage, match="args cannot be split"):
        build(AdapterQuestion(prompt="x", settings={"args": "'"}), "/nowhere")


def test_users_own_number_of_retries_is_left_alone() -> None:
    question = AdapterQuestion(prompt="x", environ={"CLAUDE_CODE_MAX_RETRIES": "7"})

    assert "CLAUDE_CODE_MAX_RETRIES" not in build(question, "/nowhere").environ


def test_schema_that_is_asked_for_holds_fields_and_words() -> None:
    command = build(AdapterQuestion(prompt="Review it.\n", schema=SCHEMA), "/nowhere")

    schema = json.loads(command.argv[command.argv.index("--json-schema") + 1])
    assert schema["properties"]["meta"] == SCHEMA
    assert schema["required"] == ["content", "meta"]
    assert command.given.startswith(b"Review it.\n\nYour answer is taken as one JSON object")


@pytest.mark.parametrize(
    "question",
    [
        AdapterQuestion(prompt="x", schema=SCHEMA, settings={"schema": "words"}),
        AdapterQuestion(prompt="x", schema={"description": "x" * 100_000}),
    ],
    ids=["by setting", "too long for an argument"],
)
def test_fields_can_be_asked_for_in_words(question: AdapterQuestion) -> None:
    command = build(question, "/nowhere")

    assert "--json-schema" not in command.argv
    assert command.given == b"x"


@pytest.mark.parametrize(
    ("store", "rules"),
    [
        ("/w/store.git", ["--disallowedTools", "Edit(//w/store.git/**)"]),
        ("/w/project/.git", []),
    ],
)
def test_its_file_tools_are_kept_out_of_the_store(store: str, rules: list[str]) -> None:
    question = AdapterQuestion(prompt="x", environ={"UWF_REPO": store})

    assert list(build(question, "/nowhere").argv[7:]) == rules


def test_tools_of_uwf_are_offered_in_a_turn_unless_that_is_off() -> None:
    environ = {"UWF_REPO": "/store.git", "UWF_THREAD_ID": "01J"}

    command = build(AdapterQuestion(prompt="x", environ=environ), "/nowhere")
    without = build(
        AdapterQuestion(prompt="x", environ=environ, settings={"mcp": "off"}), "/nowhere"
    )

    assert command.argv[7] == "--mcp-config"
    assert json.loads(command.argv[8])["mcpServers"]["uwf"]["alwaysLoad"] is True
    assert command.argv[9:11] == ("--allowedTools", "mcp__uwf")
    assert "mcp" not in " ".join(without.argv)


def test_text_comes_with_session_usage_and_trace() -> None:
    answer = read(ADAPTER, "text")

    assert (answer.text, answer.structured) == (FRONT, None)
    assert answer.session
    assert answer.usage["inputTokens"] == 22
    assert answer.usage["outputTokens"] == 14
    assert answer.usage["turns"] == 2
    assert answer.usage["costUsd"] > 0
    assert [event["type"] for event in answer.trace] == ["tool", "message"]
    tool = {"name": "Bash", "input": {"command": "echo hi"}, "output": "hi", "ok": True}
    assert tool.items() <= answer.trace[0].items()


def test_object_is_taken_apart() -> None:
    answer = read(ADAPTER, "schema", schema=SCHEMA)

    assert (answer.text, answer.structured) == ("It is **fine**.", {"approved": True})
    assert "StructuredOutput" not in str(answer.trace)


def test_missing_object_is_left_to_the_words() -> None:
    answer = read(ADAPTER, "schema-ignored", schema=SCHEMA)

    assert (answer.text, answer.structured) == (FRONT, None)


def test_bare_fields_count_as_well_and_the_last_words_are_the_text() -> None:
    result = RESULT | {"result": '{"approved": true}', "structured_output": {"approved": True}}
    ended = make_ended([said("I looked."), result], schema=SCHEMA)

    answer = ADAPTER.parse(ended)

    assert (answer.text, answer.structured) == ("I looked.", {"approved": True})


def test_cost_of_a_resumed_session_is_that_of_this_question() -> None:
    first = read(ADAPTER, "text")

    answer = read(ADAPTER, "resumed", spent=first.usage)

    assert answer.session == first.session
    assert answer.usage["costUsd"] == pytest.approx(first.usage["costUsd"])
    assert answer.usage["inputTokens"] == first.usage["inputTokens"]


def test_cost_of_a_resumed_session_is_left_out_if_its_earlier_cost_is_unknown() -> None:
    assert "costUsd" not in read(ADAPTER, "resumed").usage


def test_session_that_counts_anew_has_its_whole_cost() -> None:
    assert (
        ADAPTER.parse(make_ended([RESULT], session="s1", spent={"costUsd": 0.75})).usage["costUsd"]
        == 0.5
    )


def test_input_is_all_that_was_read() -> None:
    usage = ADAPTER.parse(make_ended([RESULT])).usage

    assert (usage["inputTokens"], usage["cachedInputTokens"]) == (3210, 200)
    assert "reasoningTokens" not in usage


def test_refused_tool_is_reported_and_no_failure() -> None:
    answer = read(ADAPTER, "refused")

    assert answer.text == FRONT
    refused = answer.trace[-1]
    assert (refused["type"], refused["name"], refused["allowed"]) == ("permission", "Bash", False)
    assert answer.trace[0]["ok"] is False


@pytest.mark.parametrize("situation", ["error-401", "error-500", "no-login", "usage-limit"])
def test_words_of_a_failure_are_no_answer(situation: str) -> None:
    partial = read_failure(ADAPTER, situation).partial

    assert partial is not None
    assert partial.text == ""


def test_usage_limit_tells_when_it_ends() -> None:
    failure = read_failure(ADAPTER, "usage-limit")

    assert failure.facts["resetAt"] == 1_795_000_000_000
    assert failure.hint == "the limit ends at 2026-11-18 11:06:40 UTC"


def test_work_up_to_a_limit_of_turns_is_kept() -> None:
    ended = make_ended([said("I began."), RESULT | {"subtype": "error_max_turns"}], status=1)

    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(ended)

    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.partial.usage["turns"]) == ("Fine.", 1)
