import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.agentkit.programs.mock_script import MockAttempt, parse_script
from uwf_git.agents.reply import parse_reply

NOTHING = MockAttempt(
    stderr="", delay_s=0, flood_bytes=0, output=b"", hang=False, signal=None, exit_status=0
)

SCRIPT = b"""\
planner:
  - meta: {n: 1}
  - - {exit: 1}
    - meta: {n: 2}
reviewer:
  - {}
"""


def only(attempt: dict[str, Any]) -> MockAttempt:
    """Read a script of one attempt, written as JSON."""
    script = parse_script(json.dumps({"dev": [attempt]}, ensure_ascii=False).encode())
    return script.get_attempt("dev", visit=1, attempt=1)


@pytest.mark.parametrize(
    ("visit", "attempt", "output", "status"),
    [
        (1, 1, b'{"meta": {"n": 1}}\n', 0),
        (1, 9, b'{"meta": {"n": 1}}\n', 0),
        (2, 1, b"", 1),
        (2, 2, b'{"meta": {"n": 2}}\n', 0),
        (2, 9, b'{"meta": {"n": 2}}\n', 0),
        (9, 1, b"", 1),
    ],
)
def test_turns_and_attempts_come_in_order_and_the_last_repeats(
    visit: int, attempt: int, output: bytes, status: int
) -> None:
    found = parse_script(SCRIPT).get_attempt("planner", visit=visit, attempt=attempt)

    assert (found.output, found.exit_status) == (output, status)


def test_nothing_asked_for_is_nothing_done() -> None:
    assert parse_script(SCRIPT).get_attempt("reviewer", visit=1, attempt=1) == NOTHING


def test_unknown_role_is_reported() -> None:
    with refuses("bad-script", match=r"mock script: no role tester, only planner, reviewer"):
        parse_script(SCRIPT).get_attempt("tester", visit=1, attempt=1)


def test_attempt_may_do_many_things() -> None:
    found = only({"stderr": "log\n", "delay": 0.5, "flood": 10, "stdout": "é", "signal": "TERM"})

    assert found == MockAttempt(
        stderr="log\n",
        delay_s=0.5,
        flood_bytes=10,
        output="é".encode(),
        hang=False,
        signal=15,
        exit_status=0,
    )
    assert only({"stdoutBase64": "/w=="}).output == b"\xff"
    assert only({"hang": True}).hang
    assert [only({"signal": each}).signal for each in (9, "KILL", "SIGKILL")] == [9, 9, 9]


# What may stand in a script as it is.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Zl", "Zp"]))
METAS = st.dictionaries(
    TEXT, st.none() | st.booleans() | st.integers(-999, 999) | TEXT | st.text("a: #'\"\\{}[]-?&*!")
)


@given(METAS, TEXT)
def test_every_form_says_what_was_meant(meta: dict[str, Any], content: str) -> None:
    result = only({"meta": meta, "content": content, "session": "s"}).output
    bare = only({"meta": meta, "form": "bare"}).output

    reply = parse_reply(result, protocol="positional")
    assert (reply.meta, reply.content, reply.session) == (meta, content, "s")
    assert json.loads(bare) == meta


@given(METAS.filter(bool), TEXT)
def test_front_matter_says_what_was_meant(meta: dict[str, Any], content: str) -> None:
    output = only({"meta": meta, "content": content, "form": "front-matter"}).output

    reply = parse_reply(output, protocol="positional")
    assert (reply.form, reply.meta, reply.content) == ("front-matter", meta, content)


def test_front_matter_has_room_for_what_yaml_has_not() -> None:
    escaped = r"\u0085 \u2028 \ufeff \ufffe \u007f \u0000 \n"
    script = f'dev: [{{form: front-matter, meta: {{"{escaped}": ["{escaped}"]}}}}]'

    output = parse_script(script.encode()).get_attempt("dev", visit=1, attempt=1).output

    text = "\x85 \u2028 \ufeff \ufffe \x7f \0 \n"
    assert parse_reply(output, protocol="positional").meta == {text: [text]}


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("", "the file is empty"),
        ("a: [", r"line \d+: "),
        ("[]", "for each role the list of its turns"),
        ("{}", "for each role the list of its turns"),
        ("dev: {}", r"line 1: the turns of dev are not a list"),
        ("dev: []", "the turns of dev are not a list"),
        ("dev:\n  - []", "line 2: a turn without an attempt"),
        ("dev:\n  - {}\n  - x", "line 3: an attempt is an object"),
        ("dev:\n  - - x", "line 2: an attempt is an object"),
        ("dev:\n  - meta: {}\n    metta: 1", "line 3: the key metta is not one of meta, content"),
        ("dev:\n  - content: 5", "line 2: content is not a text"),
        ("dev:\n  - usage: []", "usage is not an object"),
        ("dev:\n  - delay: -1", "delay is not a number of seconds"),
        ("dev:\n  - delay: true", "delay is not a number of seconds"),
        ("dev:\n  - flood: 1.5", "flood is not a number of bytes"),
        ("dev:\n  - exit: 256", "exit is not an exit status"),
        ("dev:\n  - signal: BOOM", "signal is not a signal"),
        ("dev:\n  - hang: 1", "hang is not true or false"),
        ("dev:\n  - form: xml", "form is not one of json, front-matter, bare"),
        ("dev:\n  - stdoutBase64: '*'", "stdoutBase64 is not base64"),
        ("dev:\n  - {stdout: x, meta: {}}", "stdout is the whole output"),
        ("dev:\n  - {stdout: x, stdoutBase64: ''}", "stdout is the whole output"),
        ("dev:\n  - {stdout: x, form: bare}", "stdout is the whole output"),
        ("dev:\n  - {exit: 1, signal: 9}", "exit and signal are two ends"),
        ("dev:\n  - {hang: true, exit: 1}", "exit and hang are two ends"),
        ("dev:\n  - {form: bare}", "the form bare needs a meta with fields"),
        ("dev:\n  - {form: front-matter, meta: [1]}", "front-matter needs a meta with fields"),
        ("dev:\n  - {form: bare, meta: {}, content: x}", "the form bare cannot carry content"),
        ("dev:\n  - {form: front-matter, meta: {}, usage: {}}", "front-matter cannot carry usage"),
    ],
)
def test_error_in_a_script_is_reported(script: str, problem: str) -> None:
    with refuses("bad-script", match=problem) as caught:
        parse_script(script.encode())

    assert caught.value.hint == "see uwf-mock --help"
