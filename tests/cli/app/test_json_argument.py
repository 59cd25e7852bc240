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

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
FINITE = SCALARS.filter(lambda value: value not in {float("inf"), float("-inf")}) | st.text()
VALUES = st.recursive(FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json_text(json.dumps(value), "it") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1: expecting value"),
        ('{\n  "a": }', "line 2, column 8: expecting value"),
        ("[1] [2]", "line 1, column 5: extra data"),
        ("{'a': 1}", "line 1, column 2: expecting property name"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is duplicated"),
        ("[NaN]", "NaN is a number in JavaScript only"),
        ("-Infinity", "-Infinity is a number"),
        ("1e999", "the number 1e999 is too large"),
        ("[" + "1" * 5000 + "]", "is too large"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a":' * 100_000, "it is nested too deeply"),
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
        "error: standard input is not JSON: line 1"
    )
