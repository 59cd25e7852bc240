import json
from dataclasses import replace
from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, SCHEMA, end, lines, replay

from uwf_git.agentkit.adapters.qwen import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.role_object import GUIDE
from uwf_git.agents.nested import allowed_environment

TURN = {"UWF_REPO": "/srv/store.git", "UWF_THREAD_ID": "01J7K9M2XNPQR5VWBCDF8G3H4T"}


def read(folder: Path, situation: str) -> AdapterAnswer:
    schema = SCHEMA if situation.startswith("schema") else None
    return ADAPTER.parse(replay(folder, "qwen", situation, schema=schema))


def fail(folder: Path, situation: str) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, situation)
    return caught.value


def test_prompt_goes_to_stdin_and_no_person_is_asked() -> None:
    command = build(AdapterQuestion(prompt="Tú"), "/step")

    assert command.argv == (
        "qwen", "--output-format", "stream-json", "--approval-mode", "yolo",
    )  # fmt: skip
    assert command.given == "Tú".encode()


def test_settings_and_session_become_arguments() -> None:
    settings = {"model": "qwen3", "permission": "plan", "args": "--auth-type openai"}

    argv = build(AdapterQuestion(prompt="", session="u-1", settings=settings), "/step").argv

    assert argv[3:] == (
        "--approval-mode", "plan", "--model", "qwen3", "--resume", "u-1", "--auth-type", "openai",
    )  # fmt: skip


def test_schema_of_fields_and_words_goes_into_a_file(tmp_path: Path) -> None:
    command = build(AdapterQuestion(prompt="Review it.", schema=SCHEMA), str(tmp_path))

    assert command.argv[-2:] == ("--json-schema", f"@{tmp_path}/schema.json")
    schema = json.loads((tmp_path / "schema.json").read_text())
    assert schema["properties"]["meta"]["properties"] == SCHEMA["properties"]
    assert command.given == f"Review it.\n{GUIDE}\n".encode()


def test_fields_can_be_asked_for_in_words(tmp_path: Path) -> None:
    question = AdapterQuestion(prompt="Review it.", schema=SCHEMA, settings={"schema": "words"})

    command = build(question, str(tmp_path))

    assert "--json-schema" not in command.argv
    assert command.given == b"Review it."


@pytest.mark.parametrize(("setting", "is_offered"), [("", True), ("off", False)])
def test_our_tools_are_offered_in_a_turn(setting: str, is_offered: bool) -> None:  # noqa: FBT001 (pytest gives it)
    argv = build(AdapterQuestion(prompt="", environ=TURN, settings={"mcp": setting}), "/step").argv

    assert ("--mcp-config" in argv) is is_offered
    # Otherwise the model would have to look for them first.
    assert ('"alwaysLoadTools": true' in argv[-1]) is is_offered


def test_marks_of_a_qwen_around_us_are_kept_from_it() -> None:
    marks = dict.fromkeys(
        ["QWEN_CODE", "QWEN_CODE_SESSION_ID", "QWEN_CODE_NO_RELAUNCH", "QWEN_CODE_CLI"], "1"
    )

    seen = allowed_environment({**marks, "QWEN_HOME": "h"}, more=ADAPTER.environ)

    assert seen == {"QWEN_HOME": "h"}


def test_text_of_the_result_is_the_answer(tmp_path: Path) -> None:
    answer = read(tmp_path, "text")

    assert answer.text == FRONT
    assert answer.structured is None
    assert answer.usage == {
        "inputTokens": 22, "outputTokens": 14, "cachedInputTokens": 0, "turns": 2
    }  # fmt: skip
    tool = answer.trace[0]
    assert (tool["type"], tool["name"], tool["ok"]) == ("tool", "run_shell_command", True)
    assert (tool["input"]["command"], tool["output"]) == ("echo hi", "hi")


def test_tokens_of_a_resumed_session_count_on_and_turns_are_made_to(tmp_path: Path) -> None:
    ended = replay(tmp_path, "qwen", "resumed", spent={"turns": 2})

    answer = ADAPTER.parse(ended)

    assert answer.session == ended.question.session
    assert (answer.usage["inputTokens"], answer.usage["turns"]) == (44, 4)
    assert ADAPTER.usage_is_cumulative


@pytest.mark.parametrize("situation", ["schema", "schema-resumed"])
def test_object_of_a_schema_holds_fields_and_words(tmp_path: Path, situation: str) -> None:
    answer = read(tmp_path, situation)

    assert (answer.structured, answer.text) == ({"approved": True}, "It is **fine**.")


def test_words_instead_of_the_object_are_words(tmp_path: Path) -> None:
    ended = replay(tmp_path, "qwen", "schema-ignored", schema=SCHEMA)
    assert ended.run.exit_code == 1

    answer = ADAPTER.parse(ended)

    assert (answer.structured, answer.text) == (None, FRONT)
    assert answer.session is not None


def test_object_that_never_fits_is_reported(tmp_path: Path) -> None:
    failure = fail(tmp_path, "schema-never-fits")

    assert failure.kind == "model-error"
    assert "Loop detection" in failure.message
    assert failure.partial is not None
    assert failure.partial.usage["turns"] >= 4


def test_used_up_budget_is_reported(tmp_path: Path) -> None:
    failure = fail(tmp_path, "budget")

    assert failure.kind == "no-result"
    assert "tool-call budget of 1 exceeded" in failure.message
    assert failure.partial is not None
    assert failure.partial.usage["inputTokens"] > 0


def test_status_that_contradicts_the_records_counts(tmp_path: Path) -> None:
    ended = replay(tmp_path, "qwen", "text")

    with pytest.raises(AskFailed):
        ADAPTER.parse(replace(ended, run=ended.run._replace(exit_code=1)))


def test_denied_tools_and_nothing_said_is_a_matter_of_permission(tmp_path: Path) -> None:
    result = {
        "type": "result", "subtype": "success", "is_error": False, "result": "",
        "permission_denials": [{"tool_name": "edit"}],
    }  # fmt: skip

    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, lines(result)))

    assert caught.value.kind == "refused-permission"


def test_object_that_is_no_answer_of_a_role_is_kept_for_the_judge(tmp_path: Path) -> None:
    odd = {"approved": "perhaps"}
    result = {
        "type": "result", "subtype": "success", "is_error": False, "result": json.dumps(odd),
        "structured_result": odd,
    }  # fmt: skip

    answer = ADAPTER.parse(end(tmp_path, lines(result), schema=SCHEMA))

    assert (answer.structured, answer.text) == (odd, "")
