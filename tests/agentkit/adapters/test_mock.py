import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from agentkit.conftest import MakeContext, Ran, Turn

from uwf_git.agentkit.adapters.mock import find_attempt
from uwf_git.agentkit.context import AgentContext
from uwf_git.errors import BadUsage

Mock = Callable[..., Ran]

SCRIPT = """\
counter:
  - meta: {words: 1}
    content: one, I think
  - - {exit: 1, stderr: "no idea\\n"}
    - meta: {words: 3}
      content: three
      usage: {tokens: 5}
"""


@pytest.fixture
def mock(tmp_path: Path) -> Mock:
    """Run uwf-mock on a script of one turn, as the role ``dev``; it needs no store."""

    def run(attempt: str, **environ: str) -> Ran:
        (tmp_path / "script.yaml").write_text(f"dev:\n  - {attempt}\n")
        arguments = ("script.yaml", "-t", "T", "-r", "dev")
        return Turn(tmp_path, "").python(
            "-m", "uwf_git.agentkit.adapters.mock", *arguments, **environ
        )

    return run


def test_result_and_log_are_printed(mock: Mock) -> None:
    ran = mock("{meta: {ok: true}, content: é, stderr: thinking}")

    assert ran == Ran(0, '{"meta": {"ok": true}, "content": "é"}\n', "thinking")


def test_flood_comes_before_the_output(mock: Mock) -> None:
    ran = mock("{flood: 100000, stdout: end, exit: 7}")

    assert (ran.status, ran.out) == (7, "x" * 100_000 + "end")


@pytest.mark.parametrize(("name", "status"), [("KILL", -9), ("INT", -2), ("SIGTERM", -15)])
def test_death_comes_after_the_output(mock: Mock, name: str, status: int) -> None:
    assert mock(f"{{stdout: last words, signal: {name}}}") == Ran(status, "last words", "")


def test_hanging_goes_on_until_it_is_ended(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text('dev: [{stdout: "begun\\n", hang: true}]')
    mock = (sys.executable, "-m", "uwf_git.agentkit.adapters.mock")
    command = [*mock, str(tmp_path / "script.yaml"), "-t", "T", "-r", "dev"]

    with subprocess.Popen(command, stdout=subprocess.PIPE) as hanging:
        assert hanging.stdout is not None
        begun = os.read(hanging.stdout.fileno(), 100)
        with pytest.raises(subprocess.TimeoutExpired):
            hanging.wait(0.1)
        hanging.terminate()

    assert (begun, hanging.returncode) == (b"begun\n", -15)


@pytest.mark.parametrize(
    ("attempt", "err"),
    [
        ("{meat: 1}", "error: mock script, line 2: the key meat is not one of meta"),
        ("{meta: ", "error: mock script, line "),
    ],
)
def test_script_that_is_wrong_is_reported(mock: Mock, attempt: str, err: str) -> None:
    ran = mock(attempt)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(err)
    assert ran.err.endswith("hint: see uwf-mock --help\n")


def test_role_that_the_script_does_not_have_is_reported(mock: Mock, tmp_path: Path) -> None:
    mock("{}")

    ran = Turn(tmp_path, "").python(
        "-m", "uwf_git.agentkit.adapters.mock", "script.yaml", "-t", "T", "-r", "tester"
    )

    assert (ran.status, ran.out) == (1, "")
    assert "no role tester, only dev" in ran.err


def test_missing_script_is_reported(tmp_path: Path) -> None:
    ran = Turn(tmp_path, "").installed("uwf-mock", "no.yaml", "T")

    assert (ran.status, ran.out) == (1, "")
    assert "cannot read no.yaml: No such file or directory" in ran.err


@pytest.mark.parametrize("argv", [[], ["T"], ["a.yaml", "b.yaml", "T"]])
def test_other_command_lines_are_usage_errors(tmp_path: Path, argv: list[str]) -> None:
    ran = Turn(tmp_path, "").installed("uwf-mock", *argv)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.count("\n") == 2


def test_help_tells_the_keys(tmp_path: Path) -> None:
    ran = Turn(tmp_path, "").installed("uwf-mock", "--help")

    assert (ran.status, ran.err) == (0, "")
    assert "stdoutBase64" in ran.out
    assert "EXIT STATUS" in ran.out


def refuse() -> NoReturn:
    pytest.fail("the store was asked for what was known already")


def test_store_is_not_asked_for_what_the_environment_tells(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("dev:\n  - [{exit: 1}, {exit: 2}, {exit: 3}]\n")
    environ = {"UWF_ROLE": "dev", "UWF_ATTEMPT": "2"}

    assert find_attempt([str(script), "T"], environ, load=refuse).exit_status == 2


def test_store_is_asked_for_the_rest(tmp_path: Path, context: MakeContext) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("reviewer:\n  - {exit: 1}\n  - [{exit: 2}, {exit: 3}]\n")

    def load() -> AgentContext:
        return context(visit=2, attempt=2)

    assert find_attempt([str(script), "T"], {}, load=load).exit_status == 3


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_attempt_that_is_no_number_is_refused(tmp_path: Path, number: str) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("dev:\n  - [{exit: 1}, {exit: 2}]\n")

    with pytest.raises(BadUsage, match=f"UWF_ATTEMPT is '{number}'"):
        find_attempt([str(script), "T"], {"UWF_ROLE": "dev", "UWF_ATTEMPT": number}, load=refuse)


def test_thread_is_played_turn_by_turn(turn: Turn) -> None:
    (turn.place / "script.yaml").write_text(SCRIPT)
    # The script is not where the thread was started, so it is another file.
    step = ("thread", "step", turn.thread, "--workdir", str(turn.place), "--trust")

    turn.uwf(*step)
    failed = turn.python("-m", "uwf_git", *step)
    turn.uwf("thread", "retry", turn.thread)
    turn.uwf(*step)

    assert failed.status == 3
    assert "no idea" in failed.err
    steps = turn.uwf("thread", "show", turn.thread, "--full")["steps"]
    assert [(each["meta"], each["content"]) for each in steps] == [
        ({"words": 1}, "one, I think"),
        ({"words": 3}, "three"),
    ]
    assert json.dumps(steps).count("tokens") == 1
