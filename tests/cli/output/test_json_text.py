import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.screen import render_json

TEXTS = st.text(st.characters())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
FINITE = SCALARS.filter(lambda value: value not in {float("inf"), float("-inf")})
VALUES = st.recursive(FINITE, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


def reads_back_as(value: Any) -> Any:
    # Two adjacent halves of a surrogate pair become one character in any JSON.
    return json.loads(json.dumps(value))


@given(value=VALUES, pretty=st.booleans(), ascii_only=st.booleans())
def test_every_value_reads_back(value: Any, *, pretty: bool, ascii_only: bool) -> None:
    text = render_json(value, pretty=pretty, ascii_only=ascii_only)

    assert json.loads(text) == reads_back_as(value)
    assert text.encode("ascii" if ascii_only else "utf-8").strip()
    assert text.endswith("\n")
    assert pretty or text.count("\n") == 1


def test_text_is_written_as_it_is_in_utf8_and_as_escapes_elsewhere() -> None:
    assert render_json({"é": "日本"}) == '{"é":"日本"}\n'
    assert render_json("é", ascii_only=True) == '"\\u00e9"\n'


def test_pretty_is_two_spaces() -> None:
    assert render_json({"a": [1]}, pretty=True) == '{\n  "a": [\n    1\n  ]\n}\n'


def test_controls_that_json_allows_are_escaped_all_the_same() -> None:
    assert render_json("\x1b\x7f\x9b\ud800") == '"\\u001b\\u007f\\u009b\\ud800"\n'


@pytest.mark.parametrize("mark", "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069")
def test_marks_of_direction_are_escaped(mark: str) -> None:
    assert render_json({mark: mark}) == f'{{"\\u{ord(mark):04x}":"\\u{ord(mark):04x}"}}\n'


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_json([number])


def test_type_that_json_lacks_goes_through_default() -> None:
    assert render_json({"a": b"x"}, default=repr) == '{"a":"b\'x\'"}\n'
    with pytest.raises(TypeError):
        render_json(b"x")
