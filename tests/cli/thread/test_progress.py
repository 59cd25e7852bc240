import json
import os
import re
from typing import Any

import pytest
from cli.program import ANSWER, Uwf

from uwf_git.cli.output.screen import display_width


@pytest.fixture
def terminal(uwf: Uwf) -> Uwf:
    environ = {**uwf.session.environ, "TERM": "xterm"}
    return Uwf(uwf.place, uwf.session._replace(stderr_is_tty=True, environ=environ), uwf.capsys)


def failing_once(then: str = ANSWER) -> str:
    return f'test "$UWF_ATTEMPT" = 2 || {{ echo "no key" >&2; exit 7; }}; {then}'


def run(uwf: Uwf, script: str, *words: str) -> str:
    """Drive a thread, and return its progress output."""
    ran = uwf("run", uwf.file(), "-p", "x", "--agent", uwf.agent(script), *words)
    assert ran.status == 0, ran.err
    return ran.err


def test_line_of_a_terminal_tells_what_is_going_on(terminal: Uwf) -> None:
    told = run(terminal, f"echo reading >&2; sleep 0.2; {ANSWER}", "--until", "writer")

    assert re.search(r"\r\x1b\[2K●  1 writer    \d+ s, attempt 1\r", told)
    assert re.search(r"\r\x1b\[2K●  1 writer    \d+ s, attempt 1: reading\r", told)
    # The live line is cleared before the line that stays.
    assert re.search(r"\r\x1b\[2K✓  1 writer    What was said\. +\d+\.\d s\n", told)


def test_question_at_the_terminal_is_not_overwritten(terminal: Uwf) -> None:
    asks = terminal.agent(f"echo '> ' >&2; sleep 0.2; {ANSWER}", name="uwf-human")

    ran = terminal("run", terminal.file(), "-p", "x", "--agent", asks, "--until", "writer")

    assert ran.status == 0, ran.err
    assert "\x1b" not in ran.err


def test_hostile_log_cannot_move_the_cursor(terminal: Uwf) -> None:
    told = run(terminal, f"printf '\\033[2Jgone' >&2; sleep 0.2; {ANSWER}", "--until", "writer")

    assert "attempt 1: \\x1b[2Jgone" in told
    assert "\x1b[2J" not in told


def test_key_in_a_log_is_masked_and_what_looks_like_a_key_too(terminal: Uwf) -> None:
    environ = {**terminal.session.environ, "MY_API_KEY": "sk-0123456789"}
    uwf = Uwf(terminal.place, terminal.session._replace(environ=environ), terminal.capsys)
    unnamed = "sk-abcdefABCDEF0123456789"
    script = f'echo "using {unnamed} and $MY_API_KEY" >&2; sleep 0.2; {ANSWER}'

    told = run(uwf, script, "--until", "writer")

    assert "attempt 1: using [masked] and [masked]" in told
    assert "sk-" not in told


@pytest.mark.parametrize("words", [(), ("--stream",)])
def test_where_it_is_no_terminal_lines_are_plain(words: tuple[str, ...], uwf: Uwf) -> None:
    told = run(uwf, f"printf '\\033[31mred\\r\\n' >&2; {ANSWER}", *words)

    assert "\r" not in told
    assert "\x1b" not in told


@pytest.mark.parametrize("words", [(), ("--timestamps",)])
def test_step_that_takes_long_gives_signs_of_life_where_it_is_no_terminal(
    words: tuple[str, ...], uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.cli.thread.progress._FIRST_SIGN_S", 0.1)
    script = f"printf 'read\\033[2Jing\\n' >&2; sleep 0.6; {ANSWER}"

    signs = run(uwf, script, "--until", "writer", *words).splitlines()[1:-4]

    # Less and less often.
    assert 2 <= len(signs) <= 4
    time = r"\S+Z " if words else ""
    for sign in signs[:-1]:
        assert re.fullmatch(time + r"writer, 0 s, attempt 1: read\\x1b\[2Jing", sign)


@pytest.mark.parametrize(("columns", "shown"), [(120, "2k tokens in, 0.05 USD"), (80, "0.05 USD")])
def test_live_line_has_tokens_and_cost_as_far_as_agents_reported_them(
    columns: int, shown: str, terminal: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: size)
    event = '{"type": "turn", "usage": {"inputTokens": 1500, "costUsd": 0.05}}'
    spent = ANSWER.replace('"content"', '"usage": {"inputTokens": 500}, "content"')

    told = run(terminal, f"echo '{event}' >>$UWF_TRACE; sleep 0.3; {spent}")

    assert re.search(rf"●  1 writer    \d+ s, attempt 1, so far {shown}\r", told)
    # In its second turn: what the first one told at its end, and its own.
    assert re.search(rf"●  2 checker   \d+ s, attempt 1, so far {shown}\r", told)


def test_stream_shows_what_agents_print_as_it_comes(terminal: Uwf) -> None:
    told = run(terminal, f"printf thinking >&2; sleep 0.1; {ANSWER}", "--stream", "--max-steps=1")

    lines = told.splitlines()
    assert lines[1:3] == ["thinking", "What was said."]
    assert lines[3].startswith("step 1 writer")


def test_process_that_outlives_its_agent_is_named(uwf: Uwf) -> None:
    leaves = f"sleep 5 & {ANSWER}"

    driven = run(uwf, leaves, "--until", "writer")
    stepped = uwf("thread", "step", "@", "--agent", uwf.agent(leaves)).err

    for told in (driven, stepped):
        assert re.search(r"^warning: \w+ has ended, .*: sleep \(\d+\);", told, re.MULTILINE)


def test_retry_is_reported_before_it_is_waited_for(uwf: Uwf) -> None:
    uwf("config", "set", "uwf.retries", "1")
    uwf("config", "set", "uwf.backoff", "0.01")

    told = run(uwf, failing_once(), "--until", "writer")

    assert "writer failed (agent): exit status 7: no key; trying again in 0.01 s\n" in told


GIVES_UP = """\
name: demo
root:
  type: sequential
  nodes:
    - {type: agent, agentId: breaker, onError: continue}
    - {type: agent, agentId: closer}
"""


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_place_that_is_given_up_is_not_said_to_be_tried_again(
    uwf: Uwf, terminal: Uwf, *, on_terminal: bool
) -> None:
    agent = uwf.agent('[ "$UWF_ROLE" = breaker ] && exit 7; echo done')
    file = uwf.file(GIVES_UP)

    told = (terminal if on_terminal else uwf)("run", file, "--agent", agent).err

    assert "again" not in told
    assert re.search(r"exit status 7;? +given up", told)


def test_failure_has_a_time_too_if_asked(uwf: Uwf) -> None:
    ran = uwf("run", uwf.file(), "-p", "x", "--agent", uwf.agent("exit 9"), "--timestamps")

    assert re.search(r"^\S+Z writer failed \(agent\): exit status 9$", ran.err, re.MULTILINE)
    assert ran.err.splitlines()[-2] == "error: writer failed (agent): exit status 9"


def test_limit_that_is_slept_through_is_reported(uwf: Uwf) -> None:
    left: dict[str, Any] = {"kind": "usage-limit", "message": "later", "resetAt": 1}
    write = f"printf '{json.dumps(left)}' >$UWF_STEP_DIR/failure.json"

    told = run(uwf, failing_once().replace("exit 7", f"{write}; exit 7"), "--wait")

    assert "writer waits until 1970-01-01 00:00:00 UTC: its agent hit a limit\n" in told


def test_lines_of_a_terminal_line_up_and_fit(terminal: Uwf) -> None:
    terminal("config", "set", "uwf.retries", "1")
    terminal("config", "set", "uwf.backoff", "0.01")
    long = ANSWER.replace("What was said.", "日本 " + "words " * 40)

    told = run(terminal, failing_once(long), "--until", "writer")

    lines = [line.rpartition("\x1b[2K")[2] for line in told.splitlines()]
    again, step = (next(line for line in lines if line.startswith(mark)) for mark in "↻✓")
    assert re.fullmatch(r"↻    writer    try 1: exit status 7: no key +again in 0.01 s", again)
    assert re.fullmatch(r"✓  1 writer    日本 words [words ]+….* \d\.\d s", step)
    assert display_width(again) <= 79
    assert display_width(step) == 79


def test_end_at_a_terminal_is_a_sentence_with_what_it_cost(terminal: Uwf) -> None:
    usage = '"usage": {"inputTokens": 145500, "outputTokens": 872, "costUsd": 0.586}'
    agent = terminal.agent(ANSWER.replace('"content"', f'{usage}, "content"'))
    words = ("run", terminal.file(), "-p", "x", "--agent", agent, "--until", "writer")

    ran = terminal(*words, output_format="text", stdout_is_tty=True)

    sentence, commands = ran.out.splitlines()
    told = re.escape("○ ready after 1 step in ") + r"\d\.\d s"
    assert re.fullmatch(told + " · 146k tokens in, 872 out · 0.59 USD", sentence)
    assert commands == "  uwf thread read 01J0000000    uwf thread graph 01J0000000"
    assert "look at it with" not in ran.err
