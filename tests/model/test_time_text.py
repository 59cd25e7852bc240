import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.text import render_duration, render_time


@given(st.integers(min_value=0))
def test_every_number_that_a_node_may_hold_is_reported(time_ms: int) -> None:
    assert render_time(time_ms)


@pytest.mark.parametrize(
    ("duration_ms", "told"),
    [
        (0, "0.0 s"),
        (1_500, "1.5 s"),
        (60_000, "1 min 00 s"),
        (65_999, "1 min 05 s"),
        (3_599_999, "59 min 59 s"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "25 h 00 min"),
    ],
)
def test_duration_is_reported_as_people_say_it(duration_ms: int, told: str) -> None:
    assert render_duration(duration_ms) == told
