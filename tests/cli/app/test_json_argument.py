import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.ran import Ran
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.cli.app.json_argument import parse_json_text, read_json_input
from uwf_git.cli.app.parameters import Input

WHOLE = st.integers(-(2**53), 2**53)
FINITE = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    FINITE | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(VALUES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json_text(json.dumps(value), "it") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expecting value (line 1, column 1)"),
        ('{\n  "a": }', "expecting value (line 2, column 8)"),
        ("[1] [2]", "there is more text after the value on line 1"),
        ("[-Infinity]", "-Infinity is a number in JavaScript only"),
        ("1e999", "the number 1e999 is too large"),
    ],
)
def test_invalid_json_is_refused_with_the_place(text: str, problem: str) -> None:
    with refuses("not-json") as refused:
        parse_json_text(text, "the state")

    assert refused.value.message.startswith("the state is not JSON: ")
    assert problem in refused.value.message
    assert len(refused.value.message) < 200
    assert refused.value.exit_status == 2


def test_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('\ufeff{"a": 1}')
    bad.write_text("{")

    assert read_json_input(Input(str(good))) == {"a": 1}
    with refuses("not-json", match=r"bad\.json is not JSON"):
        read_json_input(Input(str(bad)))


def test_dash_is_standard_input(ran: Callable[..., Ran]) -> None:
    assert ran("cli.demo", "show", "-", fed=b' {"a": [1, 2]} \n') == Ran(0, '{"a":[1,2]}\n', "")
    assert ran("cli.demo", "show", "-", fed=b"{").err.startswith(
        "error: standard input is not JSON: expecting property name"
    )
