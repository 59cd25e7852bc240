import json
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.reading import make_ended, read
from agentkit.adapters.replay import FRONT, SCHEMA
from agentkit.traces import find_odd

from uwf_git.agentkit.adapters.codex import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterQuestion, AskFailed

STARTED = {"type": "thread.started", "thread_id": "t1"}
COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}}
FAILED = {"type": "turn.failed", "error": {"message": "out of luck"}}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i", "type": kind, **fields}}


SAID = item("agent_message", text="Fine.")


def test_call_gives_the_prompt_by_stdin() -> None:
    command = build(AdapterQuestion(prompt="Review it.\n"), "/nowhere")

    assert command.argv == (
        "codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "-",
    )  # fmt: skip
    assert command.given == b"Review it.\n"


def test_call_follows_the_settings() -> None:
    settings = {"model": "gpt-6", "permission": "read-only", "args": "-c 'a=\"b c\"'"}

    command = build(AdapterQuestion(prompt="x", session="t1", settings=settings), "/nowhere")

    assert command.argv[4:] == (
        "--sandbox", "read-only", "--model", "gpt-6", "-c", 'a="b c"', "resume", "t1", "-",
    )  # fmt: skip


def test_schema_is_left_in_a_file_as_strict_as_the_provider_wants_it(tmp_path: Path) -> None:
    command = build(AdapterQuestion(prompt="Review it.\n", schema=SCHEMA), str(tmp_path))

    path = command.argv[command.argv.index("--output-schema") + 1]
    meta = json.loads(Path(path).read_text())["properties"]["meta"]
    assert Path(path).parent == tmp_path
    assert meta["required"] == ["approved", "summary"]
    assert meta["properties"]["summary"] == {"type": ["string", "null"]}
    assert command.given.startswith(b"Review it.\n\nYour answer is taken as one JSON object")


def test_schema_that_no_provider_takes_is_asked_for_in_words(tmp_path: Path) -> None:
    question = AdapterQuestion(prompt="x", schema={"type": "object"})

    command = build(question, str(tmp_path))
    answer = ADAPTER.parse(
        make_ended([STARTED, SAID, COMPLETED], schema=question.schema, settings=question.settings)
    )

    assert "--output-schema" not in command.argv
    assert command.given == b"x"
    assert answer.trace[-1]["type"] == "warning"
    assert "asked for in words" in answer.trace[-1]["message"]


def test_fields_can_be_asked_for_in_words(tmp_path: Path) -> None:
    question = AdapterQuestion(prompt="x", schema=SCHEMA, settings={"schema": "words"})

    assert "--output-schema" not in build(question, str(tmp_path)).argv
    assert (
        len(
            ADAPTER.parse(
                make_ended(
                    [STARTED, SAID, COMPLETED], schema=question.schema, settings=question.settings
                )
            ).trace
        )
        == 1
    )


def test_tools_of_uwf_are_offered_in_a_turn_unless_that_is_off() -> None:
    environ = {"UWF_REPO": "/store.git", "UWF_THREAD_ID": "01J"}

    command = build(AdapterQuestion(prompt="x", environ=environ), "/nowhere")
    without = build(
        AdapterQuestion(prompt="x", environ=environ, settings={"mcp": "off"}), "/nowhere"
    )

    assert command.argv[6] == "-c"
    assert command.argv[7].startswith("mcp_servers.uwf={command=")
    assert command.argv[8:] == ("-",)
    assert "mcp" not in " ".join(without.argv)


def test_text_comes_with_session_usage_and_trace() -> None:
    answer = read(ADAPTER, "text")

    assert (answer.text, answer.structured) == (FRONT, None)
    assert answer.session
    assert answer.usage == {
        "inputTokens": 22, "outputTokens": 14, "cachedInputTokens": 0, "reasoningTokens": 0,
    }  # fmt: skip
    assert [event["type"] for event in answer.trace] == ["warning", "tool", "message"]
    assert answer.trace[1]["output"] == "hi\n"
    assert answer.trace[1]["ok"] is True


def test_object_is_taken_apart_and_null_means_not_given() -> None:
    answer = read(ADAPTER, "schema", schema=SCHEMA)

    assert (answer.text, answer.structured) == ("It is **fine**.", {"approved": True})


def test_object_that_did_not_come_is_left_to_the_words() -> None:
    answer = read(ADAPTER, "schema-ignored", schema=SCHEMA)

    assert (answer.text, answer.structured) == (FRONT, None)


def test_resumed_thread_counts_on_which_the_adapter_says() -> None:
    first, second = read(ADAPTER, "text"), read(ADAPTER, "resumed")

    assert second.session == first.session
    assert second.usage["inputTokens"] == 2 * first.usage["inputTokens"]
    assert ADAPTER.usage_is_cumulative


def test_unknown_name_begins_a_new_thread_which_the_session_tells() -> None:
    assert read(ADAPTER, "odd-session").session != "nonsense"


def test_command_that_the_sandbox_forbade_is_no_failure() -> None:
    assert read(ADAPTER, "refused").text == FRONT


def test_warnings_are_no_failure() -> None:
    reconnecting = {"type": "error", "message": "Reconnecting... 1/5"}
    warning = item("error", message="unknown model")

    answer = ADAPTER.parse(make_ended([STARTED, warning, reconnecting, SAID, COMPLETED]))

    assert answer.text == "Fine."
    assert [event.get("message") for event in answer.trace[:2]] == [
        "unknown model", "Reconnecting... 1/5",
    ]  # fmt: skip


def test_last_message_is_the_answer() -> None:
    events = [STARTED, item("agent_message", text="I begin."), SAID, COMPLETED]

    assert ADAPTER.parse(make_ended(events)).text == "Fine."


def test_words_before_a_failed_turn_are_kept() -> None:
    with pytest.raises(AskFailed, match="codex: out of luck") as caught:
        ADAPTER.parse(make_ended([STARTED, SAID, FAILED], status=1))

    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.partial.session) == ("Fine.", "t1")


@pytest.mark.parametrize(
    ("events", "status", "kind"),
    [
        ([STARTED, SAID], 0, "no-result"),
        ([STARTED, SAID, COMPLETED, FAILED], 0, "model-error"),
        ([STARTED, SAID, COMPLETED], 1, "crashed"),
        ([STARTED, COMPLETED], 0, "no-result"),
    ],
    ids=["no end", "failed later", "status", "no words"],
)
def test_only_a_completed_turn_with_words_is_an_answer(
    events: list[Any], status: int, kind: str
) -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(make_ended(events, status=status))

    assert caught.value.kind == kind


def test_tools_of_all_kinds_are_traced() -> None:
    call = item("mcp_tool_call", server="uwf", tool="read_thread", status="failed")
    events = [STARTED, call, item("reasoning", text="hm"), SAID, COMPLETED]

    trace = ADAPTER.parse(make_ended(events)).trace

    assert [event["type"] for event in trace] == ["tool", "message"]
    assert trace[0].items() >= {"name": "mcp_tool_call", "ok": False}.items()
    assert trace[0]["details"] == {"server": "uwf", "tool": "read_thread"}
    assert find_odd(trace) == []
