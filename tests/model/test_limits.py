import math
import operator
from functools import reduce
from typing import Any

import pytest

from uwf_git.model.limits import (
    LONGEST_MS,
    MOST,
    count_tokens,
    find_limit_problem,
    find_spent,
    find_time_left_s,
    render_limit,
    tell_limit,
    write_usd,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import ThreadState

PRESENT = ThreadState(
    NodeHash("8FWKR3TN5V1QA"),
    {},
    0,
    depth=3,
    usage={"inputTokens": 100, "outputTokens": 20, "costUsd": 0.5, "turns": 7},
    execution_ms=61_500,
)


def limited(**limits: float) -> ThreadState:
    return PRESENT._replace(limits=limits)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"maxSteps": 3}, "3 of 3 steps are taken"),
        ({"maxExecutionTime": 61_000}, "61.5 s of 61.0 s of execution time are used"),
        ({"maxTokens": 120}, "120 of 120 tokens are used"),
        ({"maxCost": 0.5}, "$0.5000 of $0.5000 are spent"),
        ({"maxCost": 0.1, "maxSteps": 1}, "3 of 1 steps are taken"),
    ],
)
def test_limit_that_is_reached_is_reported(limits: dict[str, float], told: str) -> None:
    spent = find_spent(limited(**limits))

    assert spent is not None
    assert spent.told == told
    assert spent.used >= spent.limit


def test_cost_that_only_floats_keep_below_its_limit_has_reached_it() -> None:
    ten, used = limited(maxCost=1), reduce(operator.add, [0.1] * 10)
    assert used < 1

    assert find_spent(ten._replace(usage={"costUsd": used})) is not None
    assert find_spent(ten._replace(usage={"costUsd": 0.999999})) is None
    assert (
        find_spent(limited(maxTokens=2**53 - 1)._replace(usage={"inputTokens": 2**53 - 2})) is None
    )


def test_small_amount_is_told_by_two_digits_and_recorded_as_ever() -> None:
    spent = find_spent(limited(maxCost=5e-5)._replace(usage={"costUsd": 8e-5}))

    assert spent is not None
    assert spent.told == "$0.000080 of $0.000050 are spent"
    assert " ".join(map(write_usd, (0, 0.0042, 0.01, 1.5))) == "0.0000 0.0042 0.0100 1.5000"
    assert tell_limit("maxCost", 4e-7) == "0.00000040"
    assert render_limit("maxCost", 4e-7) == "0.0"


@pytest.mark.parametrize(
    "limits", [{}, {"maxSteps": 4, "maxExecutionTime": 61_501, "maxTokens": 121, "maxCost": 0.51}]
)
def test_limit_that_leaves_room_is_not(limits: dict[str, float]) -> None:
    assert find_spent(limited(**limits)) is None


@pytest.mark.parametrize("usage", [{}, {"inputTokens": "many", "costUsd": True}, {"turns": 9}])
def test_invalid_number_counts_for_nothing(usage: dict[str, Any]) -> None:
    assert find_spent(limited(maxTokens=1, maxCost=0.01)._replace(usage=usage)) is None
    assert count_tokens(usage) == 0


def test_time_that_is_left_is_never_negative_and_never_longer_than_a_year() -> None:
    assert find_time_left_s(PRESENT) is None
    assert find_time_left_s(limited(maxExecutionTime=62_000)) == 0.5
    assert find_time_left_s(limited(maxExecutionTime=1)) == 0
    assert find_time_left_s(limited(maxExecutionTime=10**300)) == 365 * 24 * 3600


@pytest.mark.parametrize("name", ["maxSteps", "maxTokens", "maxExecutionTime", "maxCost"])
@pytest.mark.parametrize(
    "value", [0, -1, "5", True, None, [], math.nan, math.inf, 1e300, 10**400, MOST * 2]
)
def test_anything_else_is_reported(name: str, value: Any) -> None:
    problem = find_limit_problem(name, value)

    assert problem is not None
    assert problem.startswith("must be a ")


def test_half_a_step_and_more_than_a_year_are_reported() -> None:
    assert find_limit_problem("maxSteps", 1.5) == "must be a whole number, 1 or more"
    assert find_limit_problem("maxExecutionTime", 0.5) is not None
    assert find_limit_problem("maxExecutionTime", LONGEST_MS + 1) is not None


def test_amount_is_at_least_what_is_told_of_it() -> None:
    assert find_limit_problem("maxCost", 4e-7) == "must be a number of US dollars, 0.000001 or more"
    assert find_limit_problem("maxCost", 1e-6) is None
    assert render_limit("maxCost", 1e-6) == "1e-06"
