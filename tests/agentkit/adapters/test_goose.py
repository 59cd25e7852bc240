import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.replay import FRONT, SCHEMA, end, lines

from uwf_git.agentkit.adapters.goose import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.role_object import GUIDE
from uwf_git.agentkit.step_files import PROMPT, write_prompt

TURN = {"UWF_REPO": "/srv/store.git", "UWF_THREAD_ID": "01J7K9M2XNPQR5VWBCDF8G3H4T"}
COMPLETE = {"type": "complete", "total_tokens": 18, "input_tokens": 11, "output_tokens": 7}
REQUEST = {
    "type": "toolRequest",
    "id": "c1",
    "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": {}}},
}
RESPONSE = {
    "type": "toolResponse",
    "id": "c1",
    "toolResult": {"status": "success", "value": {"content": [], "isError": False}},
}


def message(*content: Any, role: str = "assistant", name: str | None = "m1") -> dict[str, Any]:
    parts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return {"type": "message", "message": {"id": name, "role": role, "content": parts}}


def fail(folder: Path, *records: object, status: int = 0, **more: Any) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(folder, lines(*records), status=status, **more))
    return caught.value


def test_prompt_goes_to_stdin_and_no_person_is_asked(tmp_path: Path) -> None:
    command = build(AdapterQuestion(prompt="Tú"), str(tmp_path))

    assert command.argv[:6] == (
        "goose", "run", "--quiet", "--output-format", "stream-json", "--name",
    )  # fmt: skip
    assert command.argv[7:] == ("--instructions", "-")
    assert command.given == "Tú".encode()
    assert command.environ == {"GOOSE_MODE": "auto"}


def test_every_session_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = {build(AdapterQuestion(prompt=""), str(tmp_path)).argv[6] for _ in range(3)}

    assert len(names) == 3


def test_settings_and_session_become_arguments(tmp_path: Path) -> None:
    settings = {"model": "m", "provider": "p", "permission": "chat", "args": "--max-turns 9"}

    command = build(
        AdapterQuestion(prompt="again", session="uwf-1", settings=settings), str(tmp_path)
    )

    assert command.argv[5:] == (
        "--name", "uwf-1", "--provider", "p", "--model", "m", "--resume", "--instructions", "-",
        "--max-turns", "9",
    )  # fmt: skip
    assert command.environ == {"GOOSE_MODE": "chat"}


def test_schema_goes_into_a_recipe_in_which_no_brace_is_a_template(tmp_path: Path) -> None:
    prompt = 'Say {{ name }}, {% raw %}, {# no #} and "q" \\ é 😀.'

    command = build(AdapterQuestion(prompt=prompt, schema=SCHEMA), str(tmp_path))

    assert command.argv[-2:] == ("--recipe", f"{tmp_path}/recipe.json")
    assert command.given == b""
    text = (tmp_path / "recipe.json").read_text()
    assert not any(mark in text for mark in ("{{", "{%", "{#"))
    recipe = json.loads(text)
    assert recipe["prompt"].startswith(f"{prompt}\n")
    meta = recipe["response"]["json_schema"]["properties"]["meta"]
    assert meta["properties"] == SCHEMA["properties"]


@pytest.mark.parametrize("question", [{"session": "s"}, {"settings": {"schema": "words"}}])
def test_correction_and_the_wish_for_words_need_no_recipe(
    tmp_path: Path, question: dict[str, Any]
) -> None:
    assert (
        "--recipe"
        not in build(AdapterQuestion(prompt="", schema=SCHEMA, **question), str(tmp_path)).argv
    )


def test_prompt_that_is_kept_is_the_whole_of_what_the_recipe_tells(tmp_path: Path) -> None:
    write_prompt(str(tmp_path), "Review it.\n")

    build(
        AdapterQuestion(prompt="Review it.\n", schema=SCHEMA, step_dir=str(tmp_path)), str(tmp_path)
    )

    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert (tmp_path / PROMPT).read_text() == recipe["prompt"] == f"Review it.\n\n{GUIDE}\n"


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["words", "recipe"])
def test_our_tools_are_offered_for_a_turn(tmp_path: Path, schema: dict[str, Any] | None) -> None:
    question = AdapterQuestion(prompt="", environ=TURN, schema=schema)

    argv = build(question, str(tmp_path)).argv

    command = argv[argv.index("--with-extension") + 1]
    assert command == f"{sys.executable} -P -m uwf_git mcp"


@pytest.mark.parametrize(
    "question",
    [{"environ": {}}, {"settings": {"mcp": "off"}}, {"session": "uwf-1"}],
    ids=["no turn", "off", "a session has them"],
)
def test_our_tools_are_not_offered(tmp_path: Path, question: dict[str, Any]) -> None:
    argv = build(AdapterQuestion(**{"prompt": "", "environ": TURN} | question), str(tmp_path)).argv

    assert "--with-extension" not in argv


def test_what_was_said_after_the_last_tool_is_the_answer(tmp_path: Path) -> None:
    name = build(AdapterQuestion(prompt=""), str(tmp_path)).argv[6]
    stdout = lines(
        message("Let me look.", REQUEST),
        message(RESPONSE, role="user", name="m2"),
        message(FRONT[:9], name="m3"),
        message(FRONT[9:], name="m3"),
        {**COMPLETE, "cost_usd": 0.5, "cache_read_input_tokens": 3},
    )

    answer = ADAPTER.parse(end(tmp_path, stdout))

    assert (answer.text, answer.session) == (FRONT, name)
    assert answer.usage == {
        "inputTokens": 11, "outputTokens": 7, "cachedInputTokens": 3, "costUsd": 0.5
    }  # fmt: skip
    assert [(event["name"], event["ok"]) for event in answer.trace] == [("developer__shell", True)]
    assert ADAPTER.usage_is_cumulative


def test_pieces_without_a_name_belong_together(tmp_path: Path) -> None:
    stdout = lines(message("Fi", name=None), message("ne.", name=None), COMPLETE)

    assert ADAPTER.parse(end(tmp_path, stdout)).text == "Fine."


def test_object_at_the_end_of_a_recipe_holds_fields_and_words(tmp_path: Path) -> None:
    value = {"meta": {"approved": True}, "content": "Fine."}
    stdout = lines(
        message("Thinking.", REQUEST),
        message(RESPONSE, role="user"),
        message(json.dumps(value), name="m3"),
        COMPLETE,
    )

    answer = ADAPTER.parse(end(tmp_path, stdout, schema=SCHEMA))

    assert (answer.structured, answer.text) == ({"approved": True}, "Fine.")


def test_words_at_the_end_of_a_recipe_are_words(tmp_path: Path) -> None:
    answer = ADAPTER.parse(end(tmp_path, lines(message(FRONT), COMPLETE), schema=SCHEMA))

    assert (answer.structured, answer.text) == (None, FRONT)


def test_error_event_is_no_answer_even_if_it_completes(tmp_path: Path) -> None:
    error = {"type": "error", "error": "Authentication failed. Status: 401"}

    assert fail(tmp_path, message(FRONT), error, COMPLETE).kind == "auth"


def test_error_as_if_the_model_had_said_it_is_no_answer(tmp_path: Path) -> None:
    said = "Ran into this error: Rate limit exceeded.\n\nPlease retry if you think this is …"

    assert fail(tmp_path, message(said), COMPLETE).kind == "rate-limit"


def test_end_without_the_event_is_no_answer(tmp_path: Path) -> None:
    failure = fail(tmp_path, message(FRONT))

    assert failure.kind == "no-result"
    assert failure.partial is not None
    assert failure.partial.text == FRONT


def test_status_that_contradicts_the_event_counts(tmp_path: Path) -> None:
    assert fail(tmp_path, message(FRONT), COMPLETE, status=1).kind == "no-result"


def test_success_with_nothing_said_is_none(tmp_path: Path) -> None:
    assert fail(tmp_path, COMPLETE).kind == "no-result"


def test_unknown_session_is_reported_as_such(tmp_path: Path) -> None:
    stderr = "Error: No session found with name 'uwf-1'\n"

    assert fail(tmp_path, status=1, stderr=stderr, session="uwf-1").kind == "no-session"


def test_session_that_it_would_not_go_on_with_is_begun_anew(tmp_path: Path) -> None:
    failure = fail(tmp_path, "Resume cancelled.", session="uwf-1")

    assert failure.kind == "no-session"
