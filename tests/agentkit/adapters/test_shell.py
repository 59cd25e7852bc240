import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import Turn
from cli.program import Ran
from model.telling import tell_cases

from uwf_git.agentkit.adapters.shell import parse_shell_arguments

LINES = Path(__file__).parent / "made_up" / "shell_lines.json"


Shell = Callable[..., Ran]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run uwf-shell with the thread ``T``."""

    def run(*argv: str, **environ: str) -> Ran:
        return Turn(tmp_path, "").adapter("shell", *argv, "T", **environ)

    return run


def answer(ran: Ran) -> dict[str, Any]:
    """Return the answer of an agent that succeeded."""
    assert ran.status == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_output_is_the_content_and_the_log(shell: Shell) -> None:
    ran = shell("echo one; echo two >&2; printf 'é\\377'")

    assert answer(ran) == {"meta": {"ok": True, "exitCode": 0}, "content": "one\ntwo\né\ufffd"}
    assert ran.err.startswith("one\ntwo\n")


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("no-such-command", 127)],
)
def test_command_that_fails_is_an_answer(shell: Shell, command: str, code: int) -> None:
    assert answer(shell(command))["meta"] == {"ok": False, "exitCode": code}


def test_command_that_takes_too_long_is_stopped(shell: Shell) -> None:
    document = answer(shell("--timeout", "0.2", "echo begun; sleep 60"))

    assert document["meta"] == {"ok": False, "exitCode": 124, "timedOut": True}
    assert document["content"] == "begun\n\n[stopped after 0.2 s]\n"


def test_long_output_loses_its_middle_visibly(shell: Shell) -> None:
    ran = shell("echo first; yes | head -c 20000000; echo last")

    content = answer(ran)["content"]
    assert content.startswith("first\ny\n")
    assert content.endswith("\ny\nlast\n")
    assert "\n[… 18,951,435 bytes left out …]\n" in content
    assert len(ran.err) < 1024 * 1024 + 100
    assert ran.err.endswith("[the log ends here; the output goes on]\n")


def test_command_adds_fields_of_its_own(shell: Shell, tmp_path: Path) -> None:
    command = 'echo \'{"ok": false, "version": "1.4.0"}\' >"$UWF_META"; echo "$UWF_META"'

    document = answer(shell(command, UWF_STEP_DIR=str(tmp_path)))

    assert document["meta"] == {"ok": False, "exitCode": 0, "version": "1.4.0"}
    assert document["content"].startswith(f"{tmp_path}/")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo '{' >\"$UWF_META\"", "$UWF_META is not JSON: expecting property name"),
        ("echo '[]' >\"$UWF_META\"", "$UWF_META is JSON, but not an object"),
        ('echo \'{"n": NaN}\' >"$UWF_META"', "$UWF_META is not JSON: NaN is a number"),
        ("printf '\\377' >\"$UWF_META\"", "$UWF_META cannot be read"),
        ('mkdir "$UWF_META"', "$UWF_META cannot be read"),
        ('mkfifo "$UWF_META"', "$UWF_META cannot be read"),
        ('truncate -s 15T "$UWF_META"', "$UWF_META has more than 1,048,576 bytes"),
    ],
)
def test_meta_that_cannot_be_read_is_a_failure(shell: Shell, command: str, problem: str) -> None:
    shell(command).refused(1, f"error: the command's {problem}")


def test_command_stands_where_the_engine_put_it_and_sees_the_thread(
    shell: Shell, tmp_path: Path
) -> None:
    ran = shell("pwd; echo $UWF_THREAD_ID; cat", UWF_THREAD_ID="T")

    assert answer(ran)["content"] == f"{tmp_path}\nT\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_command_ends_with_its_agent(tmp_path: Path, number: signal.Signals) -> None:
    wait = "while :; do sleep 0.02; done"
    command = f"trap 'echo gone >{tmp_path}/gone; exit' TERM; echo begun; {wait}"
    step = {"UWF_STEP_DIR": str(tmp_path)}
    with Turn(tmp_path, "").start("shell", command, "T", **step) as agent:
        assert agent.stderr is not None
        assert agent.stdout is not None
        assert agent.stderr.readline() == b"begun\n"
        agent.send_signal(number)
        # It breaks when the agent and all that it started are gone.
        out = agent.stdout.read()
        agent.stderr.read()

    asked = number != signal.SIGKILL
    statuses = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}
    assert (agent.returncode, out) == (statuses[number], b"")
    assert (tmp_path / "gone").exists() == asked


def test_command_lines(golden: Callable[[str, str], None]) -> None:
    answers = {"parse_shell_arguments": parse_shell_arguments}
    golden("shell_lines.txt", tell_cases(LINES, answers))
