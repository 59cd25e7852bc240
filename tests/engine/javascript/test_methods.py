"""The methods and operators apart from expressions: what they cost, and whom they refuse."""

import pytest

from uwf_git.engine.javascript.evaluator import Reader, apply_binary, apply_unary, call_method
from uwf_git.engine.javascript.values import TEXT_UNITS, UNDEFINED, Budget, Unanswerable


def test_a_method_belongs_to_its_kind() -> None:
    reader = Reader(Budget())
    assert call_method(reader, "ab", "includes", "b") is True
    assert call_method(reader, ["ab"], "includes", "b") is False
    for target in (None, UNDEFINED, 1.0, True, {"includes": 1}):
        with pytest.raises(Unanswerable, match="has no `includes"):
            call_method(reader, target, "includes", "b")


@pytest.mark.parametrize("method", ["trim", "toLowerCase", "toUpperCase"])
def test_a_text_that_is_made_is_paid_for(method: str) -> None:
    reader = Reader(Budget())
    for _ in range(16):
        call_method(reader, "a" * TEXT_UNITS, method, UNDEFINED)
    with pytest.raises(Unanswerable, match="too much text"):
        call_method(reader, "a" * TEXT_UNITS, method, UNDEFINED)


def test_a_case_may_be_longer_than_the_text() -> None:
    with pytest.raises(Unanswerable, match="more than 1048576 characters"):
        call_method(Reader(Budget()), "ŉ" * (TEXT_UNITS // 2 + 1), "toUpperCase", UNDEFINED)


def test_objects_have_no_operators() -> None:
    budget = Budget()
    for operator in ("+", "-", "<", "==", "%"):
        with pytest.raises(Unanswerable):
            apply_binary(budget, operator, [], 1.0)
    with pytest.raises(Unanswerable):
        apply_unary(budget, "-", {})
    assert apply_unary(budget, "typeof", {}) == "object"
    assert apply_binary(budget, "==", {}, None) is False
    assert apply_binary(budget, "===", {}, "x") is False
