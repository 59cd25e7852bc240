from pathlib import Path

import pytest
from agentkit.adapters.replay import FRONT, end, lines

from uwf_git.agentkit.adapters.cursor import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage

INIT = {"type": "system", "subtype": "init", "session_id": "c6b62c6f", "model": "m", "cwd": "/p"}
ARGS = {"path": "README.md"}
TOOL = {
    "type": "tool_call",
    "subtype": "completed",
    "call_id": "c1",
    "tool_call": {"readToolCall": {"args": ARGS, "result": {"success": {"content": "# P"}}}},
}
DENIED = {
    "type": "tool_call",
    "subtype": "completed",
    "call_id": "c2",
    "tool_call": {"writeToolCall": {"args": ARGS, "result": {"error": "denied"}}},
}


def says(text: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}}


def result(text: str, **more: object) -> dict[str, object]:
    fine = {"type": "result", "subtype": "success", "is_error": False, "session_id": "c6b62c6f"}
    return {**fine, "result": text, **more}


def read(folder: Path, *records: object, status: int = 0, stderr: str = "") -> AdapterAnswer:
    return ADAPTER.parse(end(folder, lines(*records), status=status, stderr=stderr))


def fail(folder: Path, *records: object, status: int = 0, stderr: str = "") -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(folder, *records, status=status, stderr=stderr)
    return caught.value


def test_prompt_goes_to_stdin_and_no_person_is_asked() -> None:
    command = build(AdapterQuestion(prompt="Tú"), "/step")

    assert command.argv == (
        "cursor-agent", "-p", "--output-format", "stream-json", "--trust", "--force",
    )  # fmt: skip
    assert command.given == "Tú".encode()


def test_settings_and_session_become_arguments() -> None:
    settings = {"model": "m", "permission": "ask", "args": "--approve-mcps"}

    argv = build(AdapterQuestion(prompt="", session="s", settings=settings), "/step").argv

    assert argv[5:] == ("--mode", "ask", "--model", "m", "--resume", "s", "--approve-mcps")


def test_permission_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(BadUsage):
        build(AdapterQuestion(prompt="", settings={"permission": "yolo"}), "/step")


def test_what_was_said_after_the_last_tool_is_the_answer(tmp_path: Path) -> None:
    records = (INIT, says("Let me look. "), TOOL, says(FRONT), result(f"Let me look. {FRONT}"))

    answer = read(tmp_path, *records)

    assert (answer.text, answer.session, answer.usage) == (FRONT, "c6b62c6f", {})
    assert answer.trace == (
        {"type": "tool", "name": "read", "input": ARGS, "ok": True, "output": {"content": "# P"}},
    )


def test_result_counts_where_the_messages_do_not_end_as_it_does(tmp_path: Path) -> None:
    assert read(tmp_path, INIT, TOOL, says("Half"), result(FRONT)).text == FRONT
    assert read(tmp_path, INIT, says("Early."), TOOL, result(FRONT)).text == FRONT
    assert read(tmp_path, result(FRONT)).text == FRONT


def test_numbers_are_read_where_they_are_reported(tmp_path: Path) -> None:
    usage = {"inputTokens": 5, "outputTokens": 6, "cacheReadTokens": 7}

    assert read(tmp_path, result(FRONT, usage=usage)).usage == {
        "inputTokens": 5, "outputTokens": 6, "cachedInputTokens": 7
    }  # fmt: skip


def test_tool_that_failed_is_reported(tmp_path: Path) -> None:
    answer = read(tmp_path, INIT, DENIED, says(FRONT), result(FRONT))

    assert [(event["name"], event["ok"]) for event in answer.trace] == [("write", False)]


def test_failure_has_no_record_but_words(tmp_path: Path) -> None:
    failure = fail(tmp_path, status=1, stderr="Error: Not logged in. Run cursor-agent login\n")

    assert failure.kind == "auth"


@pytest.mark.parametrize("odd", [{"is_error": True}, {"subtype": "error"}, {"is_error": None}])
def test_result_that_tells_of_an_error_is_no_answer(tmp_path: Path, odd: dict[str, object]) -> None:
    failure = fail(tmp_path, INIT, result("rate limit reached", **odd))

    assert failure.kind == "rate-limit"


def test_status_that_contradicts_the_result_counts(tmp_path: Path) -> None:
    assert fail(tmp_path, result(FRONT), status=1).kind == "crashed"


def test_success_with_nothing_said_is_none(tmp_path: Path) -> None:
    assert fail(tmp_path, INIT, result("")).kind == "no-result"


def test_end_without_a_result_is_no_answer(tmp_path: Path) -> None:
    failure = fail(tmp_path, INIT, says(FRONT))

    assert failure.kind == "no-result"
    assert failure.partial is not None
    assert failure.partial.text == FRONT
