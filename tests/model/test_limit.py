import math
from typing import Any

import pytest

from uwf_git.model.thread import LONGEST_MS, MOST, find_limit_problem, render_limit


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxSteps", 1),
        ("maxSteps", 3.0),
        ("maxTokens", MOST),
        ("maxExecutionTime", 1),
        ("maxExecutionTime", LONGEST_MS),
        ("maxCost", 0.01),
        ("maxCost", 5),
    ],
)
def test_limit_that_leaves_room_is_one(name: str, value: float) -> None:
    assert find_limit_problem(name, value) is None


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


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("maxSteps", 3, "3"),
        ("maxCost", 0.5, "0.5"),
        ("maxCost", None, "no limit"),
        ("maxExecutionTime", 90_000, "1 min 30 s"),
    ],
)
def test_limit_is_written_for_people(name: str, value: float | None, told: str) -> None:
    assert render_limit(name, value) == told
