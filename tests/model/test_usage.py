import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.thread import add_usage, drop_unfit, find_unfit

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
reports = st.dictionaries(
    st.sampled_from("abc"),
    numbers | st.booleans() | st.text(max_size=2) | st.dictionaries(st.sampled_from("xy"), numbers),
)


@pytest.mark.parametrize(
    ("total", "report", "result"),
    [
        ({}, {"in": 3}, {"in": 3}),
        ({"in": 3, "cost": 0.5}, {"in": 4, "cost": 0.25}, {"in": 7, "cost": 0.75}),
        ({"in": 3}, {"out": 1}, {"in": 3, "out": 1}),
        ({"model": "a"}, {"model": "b"}, {"model": "b"}),
        ({"a": {"in": 1}}, {"a": {"in": 2, "out": 3}}, {"a": {"in": 3, "out": 3}}),
        ({"a": 1}, {"a": {"in": 2}}, {"a": {"in": 2}}),
        ({"a": {"in": 2}}, {"a": 1}, {"a": 1}),
        ({"a": True}, {"a": True}, {"a": True}),
        ({"a": 1}, {"a": None}, {"a": None}),
    ],
)
def test_numbers_add_up_and_the_rest_is_replaced(total: Any, report: Any, result: Any) -> None:
    assert add_usage(total, report) == result


@pytest.mark.parametrize("number", [1e308, 10**400])
def test_a_sum_beyond_all_floats_can_still_be_written_down(number: float) -> None:
    total = add_usage({"cost": number}, {"cost": 1e308})
    assert total == {"cost": sys.float_info.max}
    assert add_usage({"cost": -1e308}, {"cost": -1e308}) == {"cost": -sys.float_info.max}


@given(reports, reports)
def test_the_total_is_json_and_the_parts_stay_as_they_were(total: Any, report: Any) -> None:
    before = json.dumps([total, report])
    json.dumps(add_usage(total, report), allow_nan=False)
    assert json.dumps([total, report]) == before


@pytest.mark.parametrize("amount", [-1, -0.01, -(10**400), True, "5", [1], {"a": 1}])
@pytest.mark.parametrize("name", ["inputTokens", "outputTokens", "costUsd"])
def test_amount_that_would_lower_a_sum_is_unfit(name: str, amount: Any) -> None:
    assert name in str(find_unfit({"inputTokens": 1, name: amount}))
    assert drop_unfit({"inputTokens": 1, name: amount}) == {}


def test_null_is_left_out_and_what_no_limit_counts_is_free() -> None:
    spent = {
        "costUsd": 0,
        "inputTokens": 1e308,
        "saved": -1,
        "model": "m",
        "inner": {"costUsd": -1},
    }

    assert drop_unfit({**spent, "outputTokens": None}) == spent
