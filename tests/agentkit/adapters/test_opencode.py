import json
from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, end, lines, replay

from uwf_git.agentkit.adapters.opencode import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage

TURN = {"UWF_REPO": "/srv/store.git", "UWF_THREAD_ID": "01J7K9M2XNPQR5VWBCDF8G3H4T"}


def read(folder: Path, situation: str) -> AdapterAnswer:
    return ADAPTER.parse(replay(folder, "opencode", situation))


def fail(folder: Path, situation: str) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, situation)
    return caught.value


def test_prompt_goes_to_stdin_and_no_person_is_asked() -> None:
    command = build(AdapterQuestion(prompt="Tú\n" * 100_000), "/step")

    assert command.argv == (
        *("opencode", "run", "--format", "json", "--title", "uwf", "--auto"),
    )  # fmt: skip
    assert command.given == ("Tú\n" * 100_000).encode()
    assert command.environ["OPENCODE_DISABLE_AUTOUPDATE"] == "true"


def test_files_elsewhere_are_denied_but_for_temporary_ones() -> None:
    rules = build(AdapterQuestion(prompt="", environ={"TMPDIR": "/t"}), "/step").environ[
        "OPENCODE_PERMISSION"
    ]

    # Of two that fit the later one counts.
    assert list(json.loads(rules)["external_directory"].items()) == [
        ("*", "deny"),
        ("/t/*", "allow"),
    ]


@pytest.mark.parametrize("permission", ["auto", "ask"])
def test_other_permissions_leave_the_rules_to_its_configuration(permission: str) -> None:
    command = build(AdapterQuestion(prompt="", settings={"permission": permission}), "/step")

    assert "OPENCODE_PERMISSION" not in command.environ


def test_rules_of_the_user_are_left_alone() -> None:
    environ = {"OPENCODE_PERMISSION": '{"bash": "deny"}'}

    assert (
        "OPENCODE_PERMISSION"
        not in build(AdapterQuestion(prompt="", environ=environ), "/step").environ
    )


def test_settings_and_session_become_arguments() -> None:
    settings = {"model": "a/b", "permission": "ask", "args": "--agent 'my plan'"}

    argv = build(AdapterQuestion(prompt="", session="ses_1", settings=settings), "/step").argv

    assert "--auto" not in argv
    assert argv[6:] == ("--model", "a/b", "--session", "ses_1", "--agent", "my plan")


def test_permission_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(BadUsage):
        build(AdapterQuestion(prompt="", settings={"permission": "yolo"}), "/step")


def test_our_tools_join_the_configuration_that_there_is() -> None:
    environ = TURN | {"OPENCODE_CONFIG_CONTENT": '{"model": "a/b", "mcp": {"other": {}}}'}

    config = build(AdapterQuestion(prompt="", environ=environ), "/step").environ[
        "OPENCODE_CONFIG_CONTENT"
    ]

    assert json.loads(config)["model"] == "a/b"
    assert json.loads(config)["mcp"].keys() == {"other", "uwf"}


@pytest.mark.parametrize("content", ["[]", "{", '{"mcp": 1}'])
def test_invalid_configuration_is_left_to_opencode(content: str) -> None:
    environ = TURN | {"OPENCODE_CONFIG_CONTENT": content}

    assert (
        "OPENCODE_CONFIG_CONTENT"
        not in build(AdapterQuestion(prompt="", environ=environ), "/s").environ
    )


def test_our_tools_can_be_switched_off() -> None:
    question = AdapterQuestion(prompt="", environ=TURN, settings={"mcp": "off"})

    assert "OPENCODE_CONFIG_CONTENT" not in build(question, "/step").environ


def test_text_of_the_last_step_is_the_answer(tmp_path: Path) -> None:
    answer = read(tmp_path, "text")

    assert answer.text == FRONT
    assert answer.session is not None
    assert answer.session.startswith("ses_")
    assert answer.usage == {
        "inputTokens": 22, "outputTokens": 14, "reasoningTokens": 0, "cachedInputTokens": 0,
        "turns": 2,
    }  # fmt: skip
    assert answer.trace == (
        {"type": "tool", "name": "bash", "input": {"command": "echo hi"}, "ok": True,
         "output": "hi\n"},
    )  # fmt: skip


def test_resumed_session_tells_of_the_new_question_alone(tmp_path: Path) -> None:
    ended = replay(tmp_path, "opencode", "resumed")

    answer = ADAPTER.parse(ended)

    assert answer.session == ended.question.session
    assert answer.usage["inputTokens"] == 22
    assert not ADAPTER.usage_is_cumulative


def test_refused_tool_ends_with_status_0_and_no_answer(tmp_path: Path) -> None:
    ended = replay(tmp_path, "opencode", "refused")
    assert ended.run.exit_code == 0

    failure = fail(tmp_path, "refused")

    assert failure.kind == "refused-permission"
    assert "bash" in failure.message
    assert failure.partial is not None
    assert failure.partial.usage["turns"] == 1


def step(reason: str, *, text: str = FRONT, cost: float = 0) -> str:
    tokens = {"input": 1, "output": 2}
    return lines(
        {"type": "text", "sessionID": "s", "part": {"messageID": "m", "text": text}},
        {
            "type": "step_finish",
            "part": {"messageID": "m", "reason": reason, "tokens": tokens, "cost": cost},
        },
    )


def test_cost_is_added_up_where_it_is_known(tmp_path: Path) -> None:
    stdout = step("tool-calls", cost=0.25) + step("stop", cost=0.5)

    assert ADAPTER.parse(end(tmp_path, stdout)).usage["costUsd"] == 0.75


def test_unreported_tokens_are_left_out(tmp_path: Path) -> None:
    assert ADAPTER.parse(end(tmp_path, step("stop"))).usage == {
        "inputTokens": 1, "outputTokens": 2, "turns": 1
    }  # fmt: skip


@pytest.mark.parametrize(("reason", "kind"), [("length", "too-long"), ("tool-calls", "no-result")])
def test_step_that_did_not_stop_by_itself_is_no_answer(
    tmp_path: Path, reason: str, kind: str
) -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, step(reason)))

    assert caught.value.kind == kind


def test_error_counts_if_it_is_the_end(tmp_path: Path) -> None:
    error = lines({"type": "error", "error": {"name": "APIError", "data": {"message": "no"}}})
    assert ADAPTER.parse(end(tmp_path, error + step("stop"))).text == FRONT

    with pytest.raises(AskFailed, match="opencode: no"):
        ADAPTER.parse(end(tmp_path, step("stop") + error))


def test_narration_of_earlier_steps_is_trace(tmp_path: Path) -> None:
    early = lines(
        {"type": "text", "part": {"messageID": "a", "text": "Let me look."}},
        {"type": "step_finish", "part": {"messageID": "a", "reason": "tool-calls"}},
    )

    answer = ADAPTER.parse(end(tmp_path, early + step("stop")))

    assert answer.text == FRONT
    assert answer.trace == ({"type": "message", "text": "Let me look."},)
