import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from agentkit.conftest import MakeContext, Turn
from cli.program import Ran
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.agentkit.adapters.mock import (
    Attempt,
    find_attempt,
    find_signal,
    get_attempt,
    parse_script,
    render_output,
)
from uwf_git.agents.command_line import parse_reply
from uwf_git.engine.turn_context import AgentContext
from uwf_git.errors import BadUsage

SCRIPTS = Path(__file__).parent / "made_up" / "scripts.json"


Mock = Callable[..., Ran]

ARGUMENTS = ("script.yaml", "-t", "T", "-r", "dev")

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
        return Turn(tmp_path, "").adapter("mock", *ARGUMENTS, **environ)

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

    with Turn(tmp_path, "").start("mock", *ARGUMENTS) as hanging:
        assert hanging.stdout is not None
        begun = os.read(hanging.stdout.fileno(), 100)
        with pytest.raises(subprocess.TimeoutExpired):
            hanging.wait(0.1)
        hanging.terminate()

    assert (begun, hanging.returncode) == (b"begun\n", -15)


@pytest.mark.parametrize("argv", [[], ["T"], ["a.yaml", "b.yaml", "T"]])
def test_other_command_lines_are_usage_errors(tmp_path: Path, argv: list[str]) -> None:
    ran = Turn(tmp_path, "").installed("uwf-mock", *argv)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.count("\n") == 2


def refuse() -> NoReturn:
    pytest.fail("the store was asked for what was known already")


def test_store_is_not_asked_for_what_the_environment_tells(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("dev:\n  - [{exit: 1}, {exit: 2}, {exit: 3}]\n")
    environ = {"UWF_ROLE": "dev", "UWF_ATTEMPT": "2"}

    assert find_attempt([str(script), "T"], environ, load=refuse) == {"exit": 2}


def test_store_is_asked_for_the_rest(tmp_path: Path, context: MakeContext) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("reviewer:\n  - {exit: 1}\n  - [{exit: 2}, {exit: 3}]\n")

    def load() -> AgentContext:
        return context(visit=2, attempt=2)

    assert find_attempt([str(script), "T"], {}, load=load) == {"exit": 3}


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


PLAY = b"""\
planner:
  - meta: {n: 1}
  - - {exit: 1}
    - meta: {n: 2}
reviewer:
  - {}
"""


def only(attempt: dict[str, Any]) -> Attempt:
    """Read a script of one attempt, written as JSON."""
    script = parse_script(json.dumps({"dev": [attempt]}, ensure_ascii=False).encode())
    return get_attempt(script, "dev", visit=1, attempt=1)


def test_attempt_may_do_many_things() -> None:
    given = {"stderr": "log\n", "delay": 0.5, "flood": 10, "stdout": "é", "signal": "TERM"}
    assert only(given) == given
    assert render_output(only({"stdout": "é"})) == "é".encode()
    assert render_output(only({"stdoutBase64": "/w=="})) == b"\xff"
    assert [find_signal(each) for each in (9, "KILL", "SIGKILL")] == [9, 9, 9]


# What may stand in a script as it is.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Zl", "Zp"]))
METAS = st.dictionaries(
    TEXT, st.none() | st.booleans() | st.integers(-999, 999) | TEXT | st.text("a: #'\"\\{}[]-?&*!")
)


@given(METAS, TEXT)
def test_every_form_says_what_was_meant(meta: dict[str, Any], content: str) -> None:
    result = render_output(only({"meta": meta, "content": content, "session": "s"}))
    bare = render_output(only({"meta": meta, "form": "bare"}))

    reply = parse_reply(result, protocol="positional")
    assert (reply.meta, reply.content, reply.session) == (meta, content, "s")
    assert json.loads(bare) == meta


@given(METAS.filter(bool), TEXT)
def test_front_matter_says_what_was_meant(meta: dict[str, Any], content: str) -> None:
    output = render_output(only({"meta": meta, "content": content, "form": "front-matter"}))

    reply = parse_reply(output, protocol="positional")
    assert (reply.form, reply.meta, reply.content) == ("front-matter", meta, content)


def test_front_matter_has_room_for_what_yaml_has_not() -> None:
    escaped = r"\u0085 \u2028 \ufeff \ufffe \u007f \u0000 \n"
    script = f'dev: [{{form: front-matter, meta: {{"{escaped}": ["{escaped}"]}}}}]'

    output = render_output(get_attempt(parse_script(script.encode()), "dev", visit=1, attempt=1))

    text = "\x85 \u2028 \ufeff \ufffe \x7f \0 \n"
    assert parse_reply(output, protocol="positional").meta == {text: [text]}


def test_scripts_and_their_attempts(golden: Callable[[str, str], None]) -> None:
    def tell_attempt(role: str, visit: int, attempt: int) -> list[object]:
        found = get_attempt(parse_script(PLAY), role, visit=visit, attempt=attempt)
        return [render_output(found).decode(), found.get("exit", 0)]

    answers = {
        "parse_script": lambda script: parse_script(script.encode()),
        "get_attempt": tell_attempt,
    }
    golden("scripts.txt", tell_cases(SCRIPTS, answers))
