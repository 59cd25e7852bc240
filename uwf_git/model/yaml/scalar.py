"""YAML scalars: the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/ section 10.3.2).

What the core schema does not name is text: ``no``, ``on``, ``2024-01-01``, ``12:30``; YAML 1.1
readers turn these into other values.
"""

import math
import re

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NOT_A_NUMBER = re.compile(r"\.(?:nan|NaN|NAN)")


def resolve_plain(text: str) -> str | float | bool | None:
    """Return the value of a plain scalar.

    A number that JSON cannot hold becomes an infinity or NaN; the caller, who knows the line,
    refuses it.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    return _resolve_number(text)


def _resolve_number(text: str) -> str | float:
    if _DECIMAL.fullmatch(text):
        return _integer(text)
    if _OCTAL_OR_HEXADECIMAL.fullmatch(text):
        return _fitting(int(text, 0))
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return -math.inf if text[0] == "-" else math.inf
    if _NOT_A_NUMBER.fullmatch(text):
        return math.nan
    return text


def _integer(text: str) -> int | float:
    # Through float first: int() refuses more than 4,300 digits with an exception of its own.
    nearest = float(text)
    if math.isinf(nearest):
        return nearest
    digits = int(text.lstrip("+-").lstrip("0") or "0")
    return -digits if text[0] == "-" else digits


def _fitting(number: int) -> int | float:
    try:
        float(number)
    except OverflowError:
        return math.inf
    return number
