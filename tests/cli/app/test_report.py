import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.app.failure import tell
from uwf_git.model.problem import Failure, Problem


def told(
    capsys: pytest.CaptureFixture[str], facts: dict[str, Any], *, as_json: bool = False
) -> str:
    tell(Failure("bad", "it is bad", 1, "do this", facts), as_json=as_json)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_error_and_hint_are_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, {"thread": "01J", "depth": 1}) == "error: it is bad\nhint: do this\n"


def test_error_without_a_hint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Failure("bad", "two\n lines\x1b", 1), as_json=False)

    assert capsys.readouterr().err == "error: two lines\\x1b\n"


def test_problems_are_listed_between_the_two(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [
        {"path": "roles.planner", "message": "no such\nthing", "line": 12},
        {"path": "", "message": "empty", "line": 1},
        Problem("graph", "no way out"),
        "plain words\x1b",
    ]

    assert told(capsys, {"problems": problems}).splitlines() == [
        "error: it is bad",
        "  line 12: roles.planner: no such thing",
        "  line 1: empty",
        "  graph: no way out",
        "  plain words\\x1b",
        "hint: do this",
    ]


def test_only_problem_is_not_reported_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, {"problems": [Problem("a", "is bad")]}).count("\n") == 2
    assert "  a: worse\n" in told(capsys, {"problems": [Problem("a", "worse")]})


def test_last_lines_of_long_texts_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    stderr = "".join(f"line {number}\n" for number in range(100)) + "end\x1b[2J\n"

    lines = told(capsys, {"stderr": stderr, "note": "short"}).splitlines()

    assert lines[0] == "error: it is bad"
    assert lines[1:3] == ["  line 81", "  line 82"]
    assert lines[-2:] == ["  end\\x1b[2J", "hint: do this"]


def test_json_has_code_message_hint_and_then_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"problems": [Problem("a", "b", 3)], "path": b"x", "thread": "é"}

    line = told(capsys, facts, as_json=True)

    assert line.count("\n") == 1
    assert line.isascii()
    assert list(json.loads(line)["error"]) == ["code", "message", "hint", *facts]
    assert json.loads(line)["error"]["problems"] == [{"path": "a", "message": "b", "line": 3}]
    assert json.loads(line)["error"]["path"] == "b'x'"


def test_facts_cannot_hide_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    error = json.loads(told(capsys, {"code": "nice", "message": "well"}, as_json=True))["error"]

    assert error == {"code": "bad", "message": "it is bad", "hint": "do this"}


def looped() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize("fact", [float("nan"), {(1, 2): 3}, looped()])
def test_facts_that_json_cannot_hold_are_left_out(
    fact: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    error = json.loads(told(capsys, {"fact": fact}, as_json=True))["error"]

    assert error["message"] == "it is bad"


@given(message=st.text(st.characters()), hint=st.text(st.characters(), min_size=1))
def test_any_words_are_one_line_each(message: str, hint: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        tell(Failure("bad", message, 1, hint), as_json=False)

    first, second = said.getvalue().splitlines()
    assert first.startswith("error: ")
    assert second.startswith("hint: ")
