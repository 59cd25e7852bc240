import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.replay import FRONT, end
from agentkit.conftest import Turn

from uwf_git.agentkit.adapters.cli import ADAPTER, build
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage

LONGEST = 131_071


def ask_for(command: str, prompt: str = "Review it.", **settings: str) -> AdapterQuestion:
    return AdapterQuestion(
        prompt=prompt, settings={"command": command, **settings}, environ=dict(os.environ)
    )


def run(script: str, prompt: str = "Review it.", *words: str) -> AdapterAnswer:
    argv = [sys.executable, "-c", script, *words]
    return ADAPTER.ask(ask_for(shlex.join(argv), prompt))


def test_prompt_goes_to_stdin_as_a_rule(tmp_path: Path) -> None:
    command = build(ask_for("llm -m 'gpt 4'", "Tú", args="--no-log"), str(tmp_path))

    assert command.argv == ("llm", "-m", "gpt 4", "--no-log")
    assert command.given == "Tú".encode()
    assert list(tmp_path.iterdir()) == []


def test_prompt_file_takes_its_place(tmp_path: Path) -> None:
    command = build(ask_for("llm --file={prompt_file}", "Tú"), str(tmp_path))

    assert command.argv == ("llm", f"--file={tmp_path}/prompt.md")
    assert (tmp_path / "prompt.md").read_text() == "Tú"
    assert command.given == b""


def test_prompt_takes_its_place_and_is_no_pattern_itself(tmp_path: Path) -> None:
    prompt = "Say {prompt}, {prompt_file} and $HOME; `ls`\n"

    command = build(ask_for("llm 'so: {prompt}' {prompt_file}", prompt), str(tmp_path))

    assert command.argv == ("llm", f"so: {prompt}", f"{tmp_path}/prompt.md")


def test_longest_prompt_that_an_argument_holds_is_taken(tmp_path: Path) -> None:
    build(ask_for("llm {prompt}", "x" * LONGEST), str(tmp_path))

    with pytest.raises(AskFailed) as caught:
        build(ask_for("llm {prompt}", "é" * (LONGEST // 2 + 1)), str(tmp_path))

    assert caught.value.kind == "too-long"
    assert "{prompt_file}" in str(caught.value.hint)


def test_longest_argument_can_be_started() -> None:
    assert run("import sys; print(len(sys.argv[1]))", "x" * LONGEST, "{prompt}").text == (
        f"{LONGEST}\n"
    )


@pytest.mark.parametrize("command", ["", "  ", "llm 'open", "a\0b"])
def test_invalid_command_is_wrong_usage(tmp_path: Path, command: str) -> None:
    with pytest.raises(BadUsage):
        build(ask_for(command), str(tmp_path))


def test_what_it_prints_is_the_answer() -> None:
    assert run("import sys; print(sys.stdin.read().upper())", "é").text == "É\n"


def test_missing_program_is_reported_as_missing() -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.ask(ask_for("no-such-program-anywhere"))

    assert caught.value.kind == "missing"


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        ({"stdout": FRONT, "status": 1}, "crashed"),
        ({"stdout": FRONT, "status": 143}, "crashed"),
        ({"stdout": "", "status": 1, "stderr": "error: invalid API key\n"}, "auth"),
        ({"stdout": "", "status": 1, "stderr": "HTTP 429: slow down\n"}, "rate-limit"),
        ({"stdout": " \n", "status": 0}, "no-result"),
    ],
)
def test_failure_or_silence_is_no_answer(tmp_path: Path, ended: dict[str, Any], kind: str) -> None:
    with pytest.raises(AskFailed) as caught:
        ADAPTER.parse(end(tmp_path, **ended))

    assert caught.value.kind == kind
    assert caught.value.partial == AdapterAnswer(text=ended["stdout"])


def test_its_last_words_are_reported(tmp_path: Path) -> None:
    with pytest.raises(AskFailed, match="exit status 2: no such model"):
        ADAPTER.parse(end(tmp_path, status=2, stderr="loading\nerror: no such model\n"))


def test_any_command_plays_a_role(turn: Turn) -> None:
    command = 'sh -c \'grep -c words; printf "%s\\n" --- "words: 3" --- Counted.\''
    # The command's own first line is a preamble; the fields are found all the same.
    ran = turn.python("-m", "uwf_git.agentkit.adapters", "cli", command, turn.thread)

    assert ran.status == 0, ran.err
    reply = json.loads(ran.out)
    assert (reply["meta"], reply["rung"]) == ({"words": 3}, "front-matter")


def test_command_that_gives_no_fields_fails_with_its_words(turn: Turn) -> None:
    ran = turn.python("-m", "uwf_git.agentkit.adapters", "cli", "echo No idea.", turn.thread)

    assert (ran.status, ran.out) == (1, "No idea.\n")
    assert ran.err.startswith("No idea.\nerror: the answer holds no fields")


def test_program_without_a_command_is_used_wrongly(turn: Turn) -> None:
    ran = turn.python("-m", "uwf_git.agentkit.adapters", "cli", turn.thread)

    assert ran.status != 0
    assert "error: there is no command\n" in ran.err
