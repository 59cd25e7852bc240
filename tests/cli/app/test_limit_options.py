"""Limits as people type them."""

import json
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.app.parameters import LimitOption, LimitWords, limit_options


@click.command()
@limit_options
def tell(limits: dict[str, Any]) -> None:
    """Print the limits."""
    click.echo(json.dumps(limits))


def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> Any:
    tell.main(list(words), standalone_mode=False)
    return json.loads(capsys.readouterr().out)


def test_limit_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for words, limits in [
        ("", {}),
        ("--max-steps 3", {"maxSteps": 3}),
        ("--max-rounds 3", {"maxSteps": 3}),
        ("--max-steps none", {"maxSteps": None}),
        ("--no-max-steps", {"maxSteps": None}),
        ("--max-execution-time 90", {"maxExecutionTime": 90_000}),
        ("--max-execution-time 1.5", {"maxExecutionTime": 1500}),
        ("--max-execution-time 90s", {"maxExecutionTime": 90_000}),
        ("--max-execution-time 10m", {"maxExecutionTime": 600_000}),
        ("--max-execution-time 2h", {"maxExecutionTime": 7_200_000}),
        ("--max-execution-time 0.5d", {"maxExecutionTime": 43_200_000}),
        ("--max-execution-time 1w", {"maxExecutionTime": 604_800_000}),
        ("--no-max-execution-time", {"maxExecutionTime": None}),
        ("--max-tokens 9007199254740991", {"maxTokens": 9007199254740991}),
        ("--max-cost 0.25", {"maxCost": 0.25}),
        ("--max-cost none --no-max-tokens", {"maxTokens": None, "maxCost": None}),
        ("--max-steps 3 --max-steps 4", {"maxSteps": 4}),
    ]:
        assert typed(*words.split(), capsys=capsys) == limits


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--max-steps", ["0", "-1", "1.5", "many", "", "9007199254740992", "None", "٣"]),
        ("--max-execution-time", ["0", "0.0001", "-1", "1y", "10 m", "1e3", "366d", "1h30m", "m"]),
        ("--max-tokens", ["0", "1k", "1_000", "0x10"]),
        ("--max-cost", ["0", "-1", "$5", "1e3", "nan", "inf", "9" * 400]),
    ],
)
def test_invalid_limit_is_reported_with_a_valid_form(option: str, values: list[str]) -> None:
    for value in values:
        with pytest.raises(click.BadParameter, match=r" is not .*; "):
            tell.main([f"{option}={value}"], standalone_mode=False)


def test_limit_is_not_set_and_taken_away_at_once() -> None:
    with pytest.raises(click.UsageError, match="--max-cost and --no-max-cost exclude each other"):
        tell.main(["--max-cost", "1", "--no-max-cost"], standalone_mode=False)


@given(st.integers(1, 365 * 24 * 3600))
def test_seconds_are_kept_as_milliseconds(seconds: int) -> None:
    words = LimitWords("maxExecutionTime")

    assert words.convert(str(seconds), None, None) == LimitOption(seconds * 1000)
    assert words.convert(LimitOption(5), None, None) == LimitOption(5)
