"""The arguments that a model wrote for a tool."""

from typing import Any

import pytest

from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.work_folder import ToolFailed


def arguments(**values: Any) -> ToolArguments:
    return ToolArguments("read_file", values)


def test_a_text_is_given_or_its_default() -> None:
    assert arguments(path="a").text("path") == "a"
    assert arguments().text("path", ".") == "."


@pytest.mark.parametrize("value", [None, 3, ["a"], {}])
def test_value_that_is_no_text_is_reported(value: Any) -> None:
    with pytest.raises(ToolFailed, match="read_file needs a text in 'path'"):
        arguments(path=value).text("path")


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (3.0, 3), ("3", 3), (None, 7), (500, 99), ("9" * 5000, 99), (0, 0)],
)
def test_a_number_is_read_however_it_is_written(value: Any, number: int) -> None:
    assert arguments(lines=value).whole("lines", 7, most=99) == number


@pytest.mark.parametrize("value", [-1, 2.5, "three", True, [], "-3", ""])
def test_value_that_is_no_whole_number_is_reported(value: Any) -> None:
    with pytest.raises(ToolFailed, match="whole number in 'lines'"):
        arguments(lines=value).whole("lines", 7, most=99)
