"""Numbers as JavaScript's doubles: to text, from text, and the two operators that Python bars."""

import math
import re

from uwf_git.engine.javascript.characters import SPACES
from uwf_git.engine.javascript.tokens import to_double

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BASED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_INFINITE = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_BASES = {"x": 16, "o": 8, "b": 2}

# Number::toString writes digits from 1e-6 up to 1e21, with an exponent outside of that.
_MOST_DIGITS = 21
_MOST_ZEROS = 6


def number_text(number: float) -> str:
    """Return *number* as JavaScript prints it."""
    if number != number:  # noqa: PLR0124 (NaN)
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    # Both languages take the shortest digits that read back as the same double.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Write 0.*digits* times ten to the power of *point*."""
    if 0 < point <= _MOST_DIGITS:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{fraction}" if fraction else whole
    if -_MOST_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    first, rest = digits[0], digits[1:]
    return f"{first}{'.' if rest else ''}{rest}e{point - 1:+d}"


def text_number(text: str) -> float:
    """Return the number that JavaScript's Number(*text*) is."""
    text = text.strip(SPACES)
    if not text:
        return 0.0
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _BASED.fullmatch(text):
        return to_double(int(text[2:], _BASES[text[1].lower()]))
    return _INFINITE.get(text, math.nan)


def divided(left: float, right: float) -> float:
    """Return *left* / *right*, also by zero."""
    if right != 0:
        return left / right
    if left == 0 or left != left:  # noqa: PLR0124 (NaN)
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(left: float, right: float) -> float:
    """Return *left* % *right*, with the sign of *left*."""
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)
