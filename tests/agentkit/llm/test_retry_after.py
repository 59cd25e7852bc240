"""When an endpoint says to come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.llm.retry_after import find_quota_wait_s, find_wait_s

NOW_S = 1_760_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 09 Oct 2025 08:54:20 GMT"}, 60),
        ({"retry-after": "Thu, 09 Oct 2025 08:00:00 GMT"}, 0),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(
    headers: dict[str, str], wait_s: float | None
) -> None:
    assert find_wait_s(headers, now_s=NOW_S) == wait_s


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"x-ratelimit-reset-requests": "6m0.5s"}, 360.5),
        ({"x-ratelimit-reset-tokens": "12ms", "x-ratelimit-remaining-tokens": "0"}, 0.012),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "5"}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "2s"}, 2),
        ({"anthropic-ratelimit-tokens-reset": "2025-10-09T08:54:20Z"}, 60),
        ({"anthropic-ratelimit-tokens-reset": "tomorrow"}, None),
        ({"x-ratelimit-reset": "1760000060"}, 60),
        ({"x-ratelimit-reset": "1760000060000"}, 60),
        ({"x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-reset": "1760000000"}, 0),
        ({"x-ratelimit-reset-requests": "in 6m"}, None),
        ({}, None),
    ],
)
def test_a_quota_that_is_used_up_says_when_it_is_full_again(
    headers: dict[str, str], wait_s: float | None
) -> None:
    assert find_quota_wait_s(headers, now_s=NOW_S) == pytest.approx(wait_s)


NAMES = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-reset",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_whatever_the_headers_hold_a_wait_is_no_less_than_nothing(headers: dict[str, str]) -> None:
    for find in (find_wait_s, find_quota_wait_s):
        wait_s = find(headers, now_s=NOW_S)
        assert wait_s is None or wait_s >= 0
