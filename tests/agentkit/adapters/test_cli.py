import json
import os
from pathlib import Path

import pytest
from agentkit.conftest import Turn

from uwf_git.agentkit.adapters.cli import build_cli
from uwf_git.agentkit.turn import AdapterQuestion, AskFailed

LONGEST = 131_071


def ask_for(command: str, prompt: str = "Review it.", **settings: str) -> AdapterQuestion:
    return AdapterQuestion(
        prompt=prompt, settings={"command": command, **settings}, environ=dict(os.environ)
    )


def test_longest_prompt_that_an_argument_holds_is_taken(tmp_path: Path) -> None:
    build_cli(ask_for("llm {prompt}", "x" * LONGEST), str(tmp_path))

    with pytest.raises(AskFailed) as caught:
        build_cli(ask_for("llm {prompt}", "é" * (LONGEST // 2 + 1)), str(tmp_path))

    assert caught.value.kind == "too-long"
    assert "{prompt_file}" in str(caught.value.hint)


def test_any_command_plays_a_role(turn: Turn) -> None:
    command = 'sh -c \'grep -c words; printf "%s\\n" --- "words: 3" --- Counted.\''
    # The command's own first line is a preamble; the fields are found all the same.
    ran = turn.adapter("cli", command, turn.thread)

    assert ran.status == 0, ran.err
    reply = json.loads(ran.out)
    assert (reply["meta"], reply["rung"]) == ({"words": 3}, "front-matter")


def test_command_that_gives_no_fields_fails_with_its_words(turn: Turn) -> None:
    ran = turn.adapter("cli", "echo No idea.", turn.thread)

    assert (ran.status, ran.out) == (1, "No idea.\n")
    assert ran.err.startswith("No idea.\nerror: the answer holds no fields")


def test_program_without_a_command_is_used_wrongly(turn: Turn) -> None:
    ran = turn.adapter("cli", turn.thread)

    assert ran.status != 0
    assert "error: there is no command\n" in ran.err


@pytest.mark.parametrize(
    ("name", "dropped"), [("cli", ("model", "permission", "resume")), ("aider", ("resume",))]
)
def test_settings_without_effect_are_not_offered(
    turn: Turn, name: str, dropped: tuple[str, ...]
) -> None:
    told = turn.adapter(name, "--help").out
    assert "\n  timeout " in told
    assert not [each for each in dropped if f"\n  {each} " in told]
