"""`spawn_cli`, and the call of any command that it shares with uwf-cli."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agentkit.traces import find_odd

from uwf_git.agentkit import spawn_cli
from uwf_git.agentkit.programs.command import build_call
from uwf_git.agentkit.turn import AskFailed


@pytest.fixture
def step_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the step's folder, as the engine names it to an agent."""
    monkeypatch.setenv("UWF_STEP_DIR", str(tmp_path))
    monkeypatch.setenv("UWF_TRACE", str(tmp_path / "trace.jsonl"))
    return tmp_path


def read_trace(step_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (step_dir / "trace.jsonl").read_text().splitlines()]


def test_prompt_is_the_stdin_and_what_was_printed_is_returned(step_dir: Path) -> None:
    assert spawn_cli(["tr", "a-z", "A-Z"], "say it") == "SAY IT"

    assert (step_dir / "prompt.md").read_text() == "say it"
    (event,) = read_trace(step_dir)
    assert (event["name"], event["output"], event["ok"]) == ("tr", "SAY IT", True)
    assert event["input"] == {"argv": ["tr", "a-z", "A-Z"]}
    assert find_odd([event]) == []


def test_prompt_that_is_too_long_for_a_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AskFailed) as caught:
        build_call(["echo", "{prompt}"], "x" * 200_000, str(tmp_path))
    assert caught.value.kind == "too-long"


def test_no_shell_reads_the_command() -> None:
    assert spawn_cli(["echo", "$HOME; exit 1"], "") == "$HOME; exit 1\n"


def test_failure_is_named_and_noted_with_what_it_had_printed(step_dir: Path) -> None:
    with pytest.raises(AskFailed, match="exit status 7: no key") as caught:
        spawn_cli(["sh", "-c", "echo half; echo no key >&2; exit 7"], "x")

    assert caught.value.partial is not None
    assert caught.value.partial.text == "half\n"
    (event,) = read_trace(step_dir)
    assert event["ok"] is False
    assert find_odd([event]) == []


def test_program_that_is_missing_or_takes_too_long_is_named() -> None:
    with pytest.raises(AskFailed) as caught:
        spawn_cli(["no-such-program"], "x")
    assert caught.value.kind == "missing"
    with pytest.raises(AskFailed) as caught:
        spawn_cli(["sleep", "60"], "x", timeout_s=0.1)
    assert caught.value.kind == "timed-out"


def test_only_variables_of_providers_and_named_ones_are_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SETTING", "here")
    show = [sys.executable, "-c", "import os; print(os.environ.get('MY_SETTING'))"]

    assert spawn_cli(show, "") == "None\n"
    assert spawn_cli(show, "", env=("MY_SETTING",)) == "here\n"
    assert os.environ["MY_SETTING"] == "here"
