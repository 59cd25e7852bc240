"""Objects in a model's words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.messages import read_object


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\ufeff\n {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Here you are:\n{"a": 1}\nI hope it helps.',
    ],
)
def test_an_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert read_object(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    ["", "no object", "[1]", '{"a": 1} and {"b": 2}', '{"a": NaN}', '{"a": 1, "a": 2}', "}{", "{"],
)
def test_what_is_no_single_object_is_none(text: str) -> None:
    assert read_object(text) is None


SAFE = st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)


@given(st.dictionaries(st.text(), SAFE | st.text() | st.none()), st.sampled_from("\n x"))
def test_every_object_is_read_back(value: dict[str, object], around: str) -> None:
    assert read_object(around + json.dumps(value) + around) == value


@given(st.text())
def test_any_text_is_an_object_or_none(text: str) -> None:
    assert isinstance(read_object(text), dict | None)
