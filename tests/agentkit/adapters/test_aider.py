from dataclasses import replace
from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, end, replay

from uwf_git.agentkit.adapters.aider import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage

LOG = "TO LLM 2026-01-01T00:00:00\n-------\nUSER Hi\nLLM RESPONSE 2026-01-01T00:00:01\n"


def read(folder: Path, situation: str) -> AdapterAnswer:
    return ADAPTER.parse(replay(folder, "aider", situation))


def fail(folder: Path, situation: str) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, situation)
    return caught.value


def test_prompt_goes_into_a_file_and_no_person_is_asked(tmp_path: Path) -> None:
    command = build(AdapterQuestion(prompt="Tú", settings={"model": "openai/m"}), str(tmp_path))

    assert (tmp_path / "message.md").read_text() == "Tú"
    words = " ".join(command.argv)
    assert f"--message-file {tmp_path}/message.md" in words
    assert f"--llm-history-file {tmp_path}/calls.log" in words
    assert f"--chat-history-file {tmp_path}/chat.history" in words
    assert command.argv[-2:] == ("--model", "openai/m")
    assert {"--yes-always", "--no-auto-commits"} <= set(command.argv)


def test_no_repository_is_made_where_there_is_none(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    question = AdapterQuestion(prompt="", workdir=str(inner))
    assert "--no-git" in build(question, str(tmp_path)).argv

    (tmp_path / "project" / ".git").mkdir()

    assert "--no-git" not in build(question, str(tmp_path)).argv


def test_permission_that_it_does_not_have_is_refused(tmp_path: Path) -> None:
    dry = build(AdapterQuestion(prompt="", settings={"permission": "dry-run"}), str(tmp_path))
    assert "--dry-run" in dry.argv

    with pytest.raises(BadUsage):
        build(AdapterQuestion(prompt="", settings={"permission": "yolo"}), str(tmp_path))


def test_session_cannot_be_resumed() -> None:
    assert not ADAPTER.resumes


def test_answer_comes_from_the_log_since_stdout_is_laid_out_anew(tmp_path: Path) -> None:
    ended = replay(tmp_path, "aider", "text")
    assert FRONT.encode() not in ended.run.stdout

    answer = ADAPTER.parse(ended)

    assert answer.text.strip() == FRONT.strip()
    assert answer.usage["turns"] == 1
    assert (answer.usage["inputTokens"], answer.usage["outputTokens"]) == (11, 7)
    assert answer.session is None


def test_tokens_of_which_the_model_speaks_do_not_count(tmp_path: Path) -> None:
    answer = read(tmp_path, "lies-about-tokens")

    assert (answer.usage["inputTokens"], answer.usage["turns"]) == (11, 1)


def test_edit_is_an_answer_like_any_other(tmp_path: Path) -> None:
    ended = replay(tmp_path, "aider", "edit")
    assert b"Applied edit to a.py" in ended.run.stdout

    assert ADAPTER.parse(ended).text.startswith("Here:\n\na.py\n")


def test_status_that_contradicts_the_log_counts(tmp_path: Path) -> None:
    ended = replay(tmp_path, "aider", "text")

    with pytest.raises(AskFailed):
        ADAPTER.parse(replace(ended, run=ended.run._replace(exit_code=1)))


def test_what_looks_like_a_response_in_the_answer_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "calls.log").write_text(
        LOG + "ASSISTANT first\nASSISTANT LLM RESPONSE 2026\nASSISTANT\nASSISTANT last\n\n"
    )

    assert ADAPTER.parse(end(tmp_path)).text == "first\nLLM RESPONSE 2026\n\nlast"


def test_last_of_several_responses_is_the_answer(tmp_path: Path) -> None:
    said = "Tokens: 1.2k sent, 30 cache hit, 950 received. Cost: $0.10 message, $0.1 session.\n"
    more = "Tokens: 12k sent, 7 received. Cost: $0.20 message, $0.3 session.\n"
    (tmp_path / "calls.log").write_text(f"{LOG}ASSISTANT one\n\n{LOG}ASSISTANT two\n\n")

    answer = ADAPTER.parse(end(tmp_path, said + more))

    assert answer.text == "two"
    assert answer.trace == ({"type": "message", "text": "one"},)
    assert answer.usage == {
        "inputTokens": 13_200, "outputTokens": 957, "cachedInputTokens": 30, "costUsd": 0.3,
        "turns": 2,
    }  # fmt: skip


def test_last_call_that_failed_leaves_no_answer(tmp_path: Path) -> None:
    (tmp_path / "calls.log").write_text(f"{LOG}ASSISTANT one\n\n{LOG}\n")

    with pytest.raises(AskFailed):
        ADAPTER.parse(end(tmp_path, "litellm.RateLimitError: too many\n"))
