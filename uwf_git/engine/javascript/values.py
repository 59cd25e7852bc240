"""Values: what JavaScript makes of them without asking an object for a primitive.

A value is None, UNDEFINED, a bool, a float, a str of UTF-16 units, an array (a list of the data or
a tuple that an expression made) or an object (a Mapping of the data). `from_data` gives such a
value for a piece of JSON data; what is inside an array or object of the data is still data.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.engine.javascript.characters import from_units
from uwf_git.engine.javascript.failure import Unanswerable
from uwf_git.engine.javascript.numbers import number_text, text_number
from uwf_git.engine.javascript.undefined import UNDEFINED

_SHOWN = 40


def is_array(value: Any) -> bool:
    """Check whether *value* is an array."""
    return isinstance(value, list | tuple)


def is_object(value: Any) -> bool:
    """Check whether *value* is an object for JavaScript; arrays are."""
    return isinstance(value, list | tuple | Mapping)


def type_of(value: Any) -> str:
    """Return JavaScript's `typeof`."""
    match value:
        case bool():
            return "boolean"
        case float():
            return "number"
        case str():
            return "string"
    return "undefined" if value is UNDEFINED else "object"


def is_true(value: Any) -> bool:
    """Return what a condition makes of a value, or of a result of `evaluate`."""
    if isinstance(value, float | int | str):
        return bool(value) and value == value  # noqa: PLR0124 (NaN is false)
    return value is not None and value is not UNDEFINED


def to_text(value: Any) -> str:
    """Return JavaScript's String(*value*) of a primitive."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if value is None or value is UNDEFINED:
        return "null" if value is None else "undefined"
    raise Unanswerable(f"{described(value)} cannot become a text; choose a member of it")


def to_number(value: Any) -> float:
    """Return JavaScript's Number(*value*) of a primitive."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or value is None:
        return float(value or 0)
    if isinstance(value, str):
        return text_number(value)
    if value is UNDEFINED:
        return float("nan")
    raise Unanswerable(f"{described(value)} cannot become a number; choose a member of it")


def is_strictly_equal(left: Any, right: Any) -> bool:
    """Return `left === right`; two objects are refused, since data has no identity."""
    if is_object(left) and is_object(right):
        raise Unanswerable(f"{described(left)} and {described(right)} cannot be compared")
    return type_of(left) == type_of(right) and bool(left == right)


def is_loosely_equal(left: Any, right: Any) -> bool:
    """Return `left == right`."""
    if _is_nothing(left) or _is_nothing(right):
        return _is_nothing(left) and _is_nothing(right)
    if is_object(left) or is_object(right):
        raise Unanswerable(f"{described(left)} and {described(right)} cannot be compared")
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return to_number(left) == to_number(right)


def described(value: Any) -> str:
    """Name a value in an error."""
    if is_array(value):
        return "an array"
    if isinstance(value, str):
        return f"the text {from_units(value[:_SHOWN])!r}"
    return "an object" if isinstance(value, Mapping) else to_text(value)


def _is_nothing(value: Any) -> bool:
    return value is None or value is UNDEFINED
