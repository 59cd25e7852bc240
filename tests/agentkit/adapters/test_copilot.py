from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, end, lines, replay

from uwf_git.agentkit.adapters.copilot import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage

TURN = {"UWF_REPO": "/srv/store.git", "UWF_THREAD_ID": "01J7K9M2XNPQR5VWBCDF8G3H4T"}


def read(folder: Path, situation: str) -> AdapterAnswer:
    return ADAPTER.parse(replay(folder, "copilot", situation))


def fail(folder: Path, situation: str) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, situation)
    return caught.value


def test_prompt_goes_to_stdin_and_no_person_is_asked() -> None:
    command = build(AdapterQuestion(prompt="Tú"), "/step")

    assert command.argv == (
        "copilot", "--output-format", "json", "--allow-all-tools", "--no-ask-user",
        "--no-auto-update", "--usage-output-file", "/step/usage.json",
    )  # fmt: skip
    assert command.given == "Tú".encode()


def test_settings_and_session_become_arguments() -> None:
    settings = {"model": "gpt-5", "permission": "none", "args": "--deny-tool 'shell(git push)'"}

    argv = build(AdapterQuestion(prompt="", session="u-1", settings=settings), "/step").argv

    assert "--allow-all-tools" not in argv
    assert argv[-5:] == ("--model", "gpt-5", "--resume=u-1", "--deny-tool", "shell(git push)")


def test_permission_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(BadUsage):
        build(AdapterQuestion(prompt="", settings={"permission": "yolo"}), "/step")


@pytest.mark.parametrize(("setting", "is_offered"), [("", True), ("off", False)])
def test_our_tools_are_offered_in_a_turn(setting: str, is_offered: bool) -> None:  # noqa: FBT001 (pytest gives it)
    argv = build(AdapterQuestion(prompt="", environ=TURN, settings={"mcp": setting}), "/step").argv

    assert ("--additional-mcp-config" in argv) is is_offered


def test_marks_of_a_copilot_around_us_are_kept_from_it() -> None:
    marks = {"COPILOT_LOADER_PID": "1", "COPILOT_CLI_BINARY_VERSION": "1", "COPILOT_CLI": "1"}
    environ = {**marks, "COPILOT_PROVIDER_BASE_URL": "u"}

    assert allowed_environment(environ, more=ADAPTER.environ) == {"COPILOT_PROVIDER_BASE_URL": "u"}


def test_last_message_is_the_answer(tmp_path: Path) -> None:
    answer = read(tmp_path, "text")

    assert answer.text == FRONT
    assert answer.session is not None
    assert answer.usage == {
        "inputTokens": 22, "outputTokens": 14, "cachedInputTokens": 0, "turns": 2,
        "premiumRequests": 0,
    }  # fmt: skip
    (tool,) = answer.trace
    assert (tool["type"], tool["name"], tool["ok"]) == ("tool", "bash", True)
    assert tool["input"]["command"] == "echo hi"
    assert tool["output"].startswith("hi\n")


def test_tokens_of_a_resumed_session_count_on(tmp_path: Path) -> None:
    ended = replay(tmp_path, "copilot", "resumed")

    answer = ADAPTER.parse(ended)

    assert answer.session == ended.question.session
    assert (answer.usage["inputTokens"], answer.usage["turns"]) == (44, 4)
    assert ADAPTER.usage_is_cumulative


def test_refused_tool_is_reported_in_the_trace(tmp_path: Path) -> None:
    answer = read(tmp_path, "refused")

    assert answer.text == FRONT
    assert [event["ok"] for event in answer.trace] == [False]
    assert "ermission" in answer.trace[0]["output"]


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "auth"), (400, "model-error"), (500, "model-error")]
)
def test_error_of_the_endpoint_is_reported(tmp_path: Path, status: int, kind: str) -> None:
    failure = fail(tmp_path, f"error-{status}")

    assert failure.kind == kind
    assert failure.partial is not None
    assert {"type": "warning", "message": f"a call of the model failed: HTTP {status}"} in (
        failure.partial.trace
    )


def test_status_0_without_a_result_is_no_answer(tmp_path: Path) -> None:
    stdout = lines({"type": "assistant.message", "data": {"content": FRONT}})

    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, stdout, status=0))

    assert caught.value.kind == "no-result"
    assert caught.value.partial is not None
    assert caught.value.partial.text == FRONT


def test_words_of_agents_that_it_set_to_work_are_not_its_own(tmp_path: Path) -> None:
    stdout = lines(
        {"type": "assistant.message", "data": {"content": FRONT}},
        {"type": "assistant.message", "data": {"content": "Sub", "parentToolCallId": "c"}},
        {"type": "result", "exitCode": 0, "sessionId": "s"},
    )

    answer = ADAPTER.parse(end(tmp_path, stdout))

    assert (answer.text, answer.usage) == (FRONT, {})
    assert {"type": "message", "text": "Sub"} in answer.trace
