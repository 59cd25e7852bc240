"""Expressions that are asked one after the other share what they may cost."""

from collections.abc import Callable
from typing import Any

import pytest

from uwf_git.engine.javascript.evaluator import MOST, Together
from uwf_git.engine.javascript.values import TEXT_UNITS, ExpressionFailed

# Eight long texts are half of what an expression may handle, and are made quickly.
NAMES: dict[str, Any] = {"list": [0] * 8, "long": "a" * (TEXT_UNITS - 1)}
DEAR = "list.some(x => (long + '.').length < x)"


def count_asked(ask: Callable[[], object]) -> int:
    """Return how many may be asked."""
    for count in range(1000):
        try:
            ask()
        except ExpressionFailed as error:
            if "one of too many, which took too much work" in error.message:
                return count
    raise AssertionError("there is no end")


@pytest.mark.parametrize("way", ["holds", "evaluate", "fill"])
def test_dear_expressions_end_after_some(way: str) -> None:
    together = Together()
    source = f"${{{DEAR}}}" if way == "fill" else DEAR

    count = count_asked(lambda: getattr(together, way)(source, NAMES))

    assert MOST < count <= 2 * MOST


def test_one_that_fails_costs_what_it_did() -> None:
    together = Together()
    hostile = "list.map(x => list.map(y => long + y))"

    assert count_asked(lambda: together.holds(hostile, NAMES)) <= MOST


def test_cheap_ones_may_be_as_many_as_a_move_asks() -> None:
    together = Together()
    names = {"state": {"n": 1}, "iteration": 0}
    for _ in range(10_000):
        assert together.holds("state.n === 1 && iteration < 5", names)
    with pytest.raises(ExpressionFailed, match="unknown name"):
        together.holds("state.n === 1 && iteration < 5", {"state": {}})
