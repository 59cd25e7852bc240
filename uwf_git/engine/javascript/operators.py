"""The operators that take values, not expressions."""

import operator
from collections.abc import Callable
from typing import Any

from uwf_git.engine.javascript.budget import Budget
from uwf_git.engine.javascript.failure import Unanswerable
from uwf_git.engine.javascript.numbers import divided, remainder
from uwf_git.engine.javascript.values import (
    described,
    is_loosely_equal,
    is_object,
    is_strictly_equal,
    is_true,
    to_number,
    to_text,
    type_of,
)

_EQUALITY: dict[str, Callable[[Any, Any], bool]] = {
    "===": is_strictly_equal,
    "!==": lambda left, right: not is_strictly_equal(left, right),
    "==": is_loosely_equal,
    "!=": lambda left, right: not is_loosely_equal(left, right),
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divided,
    "%": remainder,
}


def apply_unary(budget: Budget, name: str, operand: Any) -> Any:
    """Return one of `! typeof - +` of a value."""
    if name == "!":
        return not is_true(operand)
    if name == "typeof":
        return type_of(operand)
    number = _number(budget, operand)
    return -number if name == "-" else number


def apply_binary(budget: Budget, name: str, left: Any, right: Any) -> Any:
    """Return what a binary operator makes of two values."""
    if name in _EQUALITY:
        _count(budget, left, right)
        return _EQUALITY[name](left, right)
    if is_object(left) or is_object(right):
        raise Unanswerable(f"{described(left)} {name} {described(right)}: name a member")
    are_texts = isinstance(left, str) and isinstance(right, str)
    if name in _ORDER:
        _count(budget, left, right)
        if are_texts:
            return _ORDER[name](left, right)
        return _ORDER[name](to_number(left), to_number(right))
    if name == "+" and (isinstance(left, str) or isinstance(right, str)):
        left, right = to_text(left), to_text(right)
        budget.make(len(left) + len(right))
        return left + right
    return _ARITHMETIC[name](_number(budget, left), _number(budget, right))


def _number(budget: Budget, value: Any) -> float:
    if isinstance(value, str):
        budget.make(len(value))
    return to_number(value)


def _count(budget: Budget, left: Any, right: Any) -> None:
    """Count the texts that a comparison may look at: two are read together, one as a number."""
    if isinstance(left, str) and isinstance(right, str):
        budget.read(min(len(left), len(right)))
    elif isinstance(left, str) or isinstance(right, str):
        budget.make(len(left if isinstance(left, str) else right))
