from dataclasses import replace
from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, end, replay

from uwf_git.agentkit.adapters.hermes import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage

COMPLETED = '{"completed": true, "failed": false, "session_id": "s", "api_calls": 1}'


def read(folder: Path, situation: str) -> AdapterAnswer:
    return ADAPTER.parse(replay(folder, "hermes", situation))


def fail(folder: Path, situation: str) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, situation)
    return caught.value


def test_first_question_is_asked_at_once() -> None:
    command = build(AdapterQuestion(prompt="-x\n"), "/step")

    assert command.argv == (
        "hermes", "--yolo", "--usage-file", "/step/usage.json", "--oneshot=-x\n"
    )  # fmt: skip
    assert command.given == b""


def test_session_goes_on_in_a_chat_since_the_other_form_would_ignore_it() -> None:
    settings = {"model": "m", "provider": "custom", "permission": "file", "args": "--ignore-rules"}

    command = build(AdapterQuestion(prompt="again", session="s-1", settings=settings), "/step")

    assert command.argv == (
        "hermes", "chat", "-Q", "--source", "tool", "--no-restore-cwd", "--yolo", "--toolsets",
        "file", "--model", "m", "--provider", "custom", "--ignore-rules", "--resume=s-1",
        "--query=again",
    )  # fmt: skip


def test_prompt_that_no_argument_holds_is_refused_before_anything_runs() -> None:
    build(AdapterQuestion(prompt="x" * 131_061), "/step")

    with pytest.raises(AskFailed) as caught:
        build(AdapterQuestion(prompt="é" * 66_000), "/step")

    assert caught.value.kind == "too-long"
    assert "uwf-acp" in str(caught.value.hint)


def test_zero_bytes_and_broken_characters_do_not_keep_it_from_starting() -> None:
    assert build(AdapterQuestion(prompt="a\0b\ud800"), "/step").argv[-1] == "--oneshot=ab?"


@pytest.mark.parametrize("permission", ["all", "ask"])
def test_permission_that_it_does_not_have_is_refused(permission: str) -> None:
    with pytest.raises(BadUsage):
        build(AdapterQuestion(prompt="", settings={"permission": permission}), "/step")


@pytest.mark.parametrize("session", [None, "s-1"])
@pytest.mark.parametrize("permission", ["yolo", "file"])
def test_it_never_waits_for_permission_to_run_a_command(
    permission: str, session: str | None
) -> None:
    settings = {"permission": permission}

    assert (
        "--yolo"
        in build(AdapterQuestion(prompt="", session=session, settings=settings), "/step").argv
    )


def test_marks_of_a_hermes_around_us_are_kept_from_it() -> None:
    marks = dict.fromkeys(["HERMES_YOLO_MODE", "HERMES_SESSION_ID", "HERMES_REAL_HOME"], "1")

    seen = allowed_environment({**marks, "HERMES_HOME": "h"}, more=ADAPTER.environ)

    assert seen == {"HERMES_HOME": "h"}


def test_answer_is_stdout_and_the_rest_is_in_the_file(tmp_path: Path) -> None:
    answer = read(tmp_path, "text")

    assert answer.text.strip() == FRONT.strip()
    assert answer.session is not None
    assert answer.usage == {
        "inputTokens": 22, "outputTokens": 14, "cachedInputTokens": 0, "reasoningTokens": 0,
        "turns": 2,
    }  # fmt: skip


def test_chat_goes_on_with_the_session_and_its_warnings_are_no_answer(tmp_path: Path) -> None:
    ended = replay(tmp_path, "hermes", "resumed")
    assert "⚠".encode() in ended.run.stdout

    answer = ADAPTER.parse(ended)

    assert answer.text.strip() == FRONT.strip()
    assert answer.session == ended.question.session
    assert answer.usage == {}


def test_excuse_for_saying_nothing_is_no_answer_though_it_is_called_completed(
    tmp_path: Path,
) -> None:
    failure = fail(tmp_path, "nothing-said")

    assert failure.kind == "no-result"
    assert failure.partial is not None
    assert failure.partial.usage["turns"] == 4


def test_text_without_the_file_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, FRONT))

    assert caught.value.kind == "no-result"
    assert caught.value.partial is not None
    assert caught.value.partial.text == FRONT


@pytest.mark.parametrize(
    "told", ["{}", "[]", '{"completed": false, "failed": false}', '{"completed": true}']
)
def test_file_that_tells_of_no_end_is_no_answer(tmp_path: Path, told: str) -> None:
    (tmp_path / "usage.json").write_text(told)

    with pytest.raises(AskFailed):
        ADAPTER.parse(end(tmp_path, FRONT))


def test_status_that_contradicts_the_file_counts(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text(COMPLETED)
    assert ADAPTER.parse(end(tmp_path, FRONT)).usage == {"turns": 1}

    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, FRONT, status=1))

    assert caught.value.kind == "crashed"


def test_chat_that_tells_no_session_has_no_answer(tmp_path: Path) -> None:
    ended = replay(tmp_path, "hermes", "resumed")

    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(replace(ended, run=ended.run._replace(stderr=b"")))

    assert caught.value.kind == "no-result"
