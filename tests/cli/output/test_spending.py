import pytest

from uwf_git.cli.output.screen import describe_usage


@pytest.mark.parametrize(
    ("usage", "exact", "short"),
    [
        ({}, [], []),
        (
            {"inputTokens": 146_451, "outputTokens": 872, "costUsd": 0.5861},
            ["146,451 tokens in, 872 out", "0.5861 USD"],
            ["146k tokens in, 872 out", "0.59 USD"],
        ),
        ({"outputTokens": 2_500_000}, ["2,500,000 out"], ["2.5M out"]),
        ({"inputTokens": "many", "costUsd": True}, [], []),
    ],
)
def test_usage_is_told_as_far_as_it_was_reported(
    usage: dict[str, object], exact: list[str], short: list[str]
) -> None:
    assert describe_usage(usage) == exact
    assert describe_usage(usage, short=True) == short
