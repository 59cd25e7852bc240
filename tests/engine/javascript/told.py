"""Our answers as answer.js tells node's."""

import math
from typing import Any

from uwf_git.engine.javascript.evaluator import evaluate
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import UNDEFINED, ExpressionFailed, number_text

REFUSED = "refused"


def ours(text: str, names: dict[str, Any]) -> Any:
    """Return our answer, or REFUSED."""
    try:
        return told(evaluate(parse_expression(text, names), names))
    except ExpressionFailed:
        return REFUSED


def told(value: Any) -> Any:
    """Return *value* as answer.js writes it."""
    match value:
        case str():
            return {"s": value}
        case bool() | None:
            return value
        case int() | float():
            negative_zero = value == 0 and math.copysign(1, value) < 0
            return {"n": "-0" if negative_zero else number_text(float(value))}
        case list():
            return {"a": [told(each) for each in value]}
        case dict():
            return {"o": [[key, told(each)] for key, each in value.items()]}
    assert value is UNDEFINED
    return {"u": "undefined"}
