"""The functions that jsonata 0.7.1 has wrong, as in JSONata 2.2.2, and its regular expressions."""

import json
import math
import operator
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import reduce
from types import SimpleNamespace
from typing import Any

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.parser import Parser
from jsonata.utils import Utils

from uwf_git.engine.javascript import values

# Regular expressions as JavaScript reads them, on Python's `re`: translated, or refused.
#
# JSONata is defined by JavaScript, and agents' texts show the difference: Python's ``$`` holds
# before a last line break, its ``\d`` and ``\w`` know all scripts, its ``.`` matches ``\r``.

_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACES = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e"
    r"\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)

# What each class escape of JavaScript stands for, as it is written between brackets.
_CLASSES = {
    r"\d": "0-9",
    r"\D": r"\x00-/:-\U0010ffff",
    r"\w": "0-9A-Z_a-z",
    r"\W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    r"\s": _SPACES,
    r"\S": _NO_SPACES,
}

_PLAIN = {
    ".": f"[^{_LINE_ENDS}]",
    "^": r"\A",
    "$": r"\Z",
    r"\b": r"(?a:\b)",
    r"\B": r"(?a:\B)",
    "{,": r"\{,",
    "[]": r"(?!)",
    "[^]": r"(?s:.)",
    **{escape: f"(?-i:[{members}])" for escape, members in _CLASSES.items()},
}

_BY_LINE = {"^": f"(?<![^{_LINE_ENDS}])", "$": rf"(?=[{_LINE_ENDS}]|\Z)"}

_TOKEN = re.compile(
    r"(?P<set>\[\^?(?:\\.|[^\]\\])*\])"
    r"|(?P<escape>\\.)"
    r"|(?P<group>\(\?(?!:|=|!|<=|<!))"
    r"|(?P<twice>(?:[*+?]|\{\d+(?:,\d*)?\})\+)"
    r"|(?P<letter>[iksIKS\u00df\u0130\u0131\u017f\u1e9e\u212a])"
    r"|(?P<other>[.^$]|\{,)",
    re.DOTALL,
)

_IN_SET = re.compile(r"(?P<before>-?)(?P<class>\\[dDsSwW])(?P<after>-?)|\\.", re.DOTALL)

# If case does not count, Python takes the Kelvin sign for a k, but not in `(?a:`, where only ASCII
# has case. A set with `\W` has all other letters anyway.
_OF_ASCII = re.compile(r"(?:[^\\\x80-\U0010ffff]|\\[^ux])*|.*\\W.*", re.DOTALL)

# A letter that means nothing after a backslash is itself in JavaScript; Python has other meanings.
_MEANINGLESS = re.compile(r"\\[aAeEgGhHiIjJklLmMNoOpPqQRTUVXyYzZ]")


class JavaScriptPattern:
    """A compiled pattern, with the methods by which jsonata knows one."""

    def __init__(self, pattern: str, *, ignore_case: bool, by_line: bool) -> None:
        try:
            self._compiled = re.compile(
                _translated(pattern, by_line=by_line), re.IGNORECASE if ignore_case else 0
            )
        except (re.error, OverflowError, ValueError) as error:
            raise ValueError(str(error)) from None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in *text* as JSONata does: an empty one can only be the first."""
        match = self._compiled.search(text)
        while match is not None:
            yield match
            if match.end() >= len(text):
                return
            match = self._compiled.search(text, match.end())
            if match is not None and not match.group():
                raise ValueError("the regular expression matches zero length text")

    def split(self, text: str) -> list[str]:
        """Return the parts of *text* between matches."""
        ends = [0, *(place for match in self.finditer(text) for place in match.span()), len(text)]
        return [text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]

    def sub(self, replacement: Callable[[re.Match[str]], str], text: str) -> str:
        parts: list[str] = []
        start = 0
        for match in self.finditer(text):
            parts += text[start : match.start()], replacement(match)
            start = match.end()
        return "".join([*parts, text[start:]])

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match, if there is one."""
        return self._compiled.search(text)


def _translated(pattern: str, *, by_line: bool) -> str:
    plain = {**_PLAIN, **_BY_LINE} if by_line else _PLAIN

    def told(token: re.Match[str]) -> str:
        text = token.group()
        if token["group"] is not None:
            raise ValueError("a group may begin with ( (?: (?= (?! (?<= (?<! only")
        if token["twice"] is not None:
            raise ValueError(f"nothing to repeat at {text}")
        if text in plain:
            return plain[text]
        if token["letter"] is not None:
            return f"(?a:{text})"
        if token["set"] is not None:
            members = _IN_SET.sub(_set_member, text)
            return f"(?a:{members})" if _OF_ASCII.fullmatch(text) else members
        return _letter(text)

    return _TOKEN.sub(told, pattern)


def _set_member(member: re.Match[str]) -> str:
    escape = member["class"]
    if escape is None:
        return _letter(member.group())
    # Beside a class, a `-` makes no range.
    before, after = (r"\-" if member[side] else "" for side in ("before", "after"))
    return before + _CLASSES[escape] + after


def _letter(escape: str) -> str:
    return escape[1] if _MEANINGLESS.fullmatch(escape) else escape


# The functions that jsonata 0.7.1 has wrong, as in JSONata 2.2.2; a missing argument is None.

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_EXPONENT_WITHOUT_DIGIT = re.compile(r"[^0-9;]*e[0-9]")

# A component marker of a date picture, as jsonata reads it; `[[` is a literal bracket.
_MARKER = re.compile(r"\[\[|\[\s*([^\]\s])[^\]]*\]")

_ISO_8601 = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>[01]\d))?(?:-(?P<day>[0-3]\d))?"
    r"(?:T(?P<hour>[0-2]\d):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?:\.(?P<fraction>\d+))?"
    r"(?:(?P<sign>[+-])(?P<ahead>[0-2]\d):?(?P<ahead_minutes>[0-5]\d)|Z)?)?",
    re.ASCII,
)
_LEAST = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refusal(text: str) -> Any:
    """Return an exception that says *text*: only D3137 ($error) passes `and` and `or` unchanged."""
    return JException("D3137", -1, text)


def number_text(value: float) -> str:
    """Return a number as JSONata writes it: JavaScript's form, fractions with 15 digits."""
    number = float(value)
    if not math.isfinite(number):
        raise JException("D1001", 0, value)
    return values.number_text(number if number.is_integer() else float(f"{number:.15g}"))


def string(value: Any, prettify: Any = None) -> str | None:
    """Return ``$string(value)``: JSON, but a text as it is and a function as nothing."""
    if isinstance(value, Utils.JList) and value.outer_wrapper:
        value = value[0]
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (Jsonata.JFunctionCallable, Parser.Symbol, JavaScriptPattern)):
        return ""
    return "".join(_json(value, "\n" if prettify is True else None))


def _json(value: Any, line: str | None) -> Iterator[str]:
    if value is None or value is Utils.NULL_VALUE:
        yield "null"
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, (int, float)):
        yield number_text(value)
    elif isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        yield values.SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    elif isinstance(value, dict):
        colon = ":" if line is None else ": "
        members = [(json.dumps(k, ensure_ascii=False) + colon, v) for k, v in value.items()]
        yield from _listed("{", [each for each in members if each[1] is not None], "}", line)
    elif isinstance(value, (list, range)):
        yield from _listed("[", [("", each) for each in value], "]", line)
    else:
        yield '""'


def _listed(start: str, items: list[tuple[str, Any]], end: str, line: str | None) -> Iterator[str]:
    inner = None if line is None else line + "  "
    yield start
    for index, (key, value) in enumerate(items):
        yield ("," if index else "") + (inner or "") + key
        yield from _json(value, inner)
    yield (line or "" if items else "") + end


def number(value: Any) -> Any:
    """Return ``$number(value)``: a text must be a number as JSON or JavaScript's bases write it."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            return float(value)
        if values.BASED.fullmatch(value):
            return int(value, 0)
    raise refusal(f"$number cannot read {string(value)} as a number")


def count(values: Any) -> int:
    """Return ``$count(values)``: one for a single value, null too."""
    return len(values) if isinstance(values, (list, range)) else int(values is not None)


def distinct(values: Any) -> Any:
    """Return ``$distinct(values)``; true is not 1."""
    if not isinstance(values, list) or len(values) <= 1:
        return values
    found = Utils.create_sequence() if Utils.is_sequence(values) else []
    for value in values:
        if not any(Utils.is_deep_equal(value, each) for each in found):
            found.append(value)
    return found


def is_identical(left: Any, right: Any) -> bool:
    """Check what ``in`` asks: JavaScript's ``===``, so an array or object equals itself only."""
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    return bool(Utils.is_deep_equal(left, right))


def sort(values: Any, swaps: Any = None) -> Any:
    """Return ``$sort(values, swaps)``: JSONata's merge sort, so an odd *swaps* has its order."""
    if values is None or len(values) <= 1:
        return values
    if swaps is not None:
        return _merge_sorted(list(values), swaps)
    if not all(map(_is_number, values)) and not all(isinstance(each, str) for each in values):
        raise refusal("$sort without a function sorts numbers or texts, not both, nor other values")
    return sorted(values)


def _merge_sorted(values: list[Any], swaps: Any) -> list[Any]:
    if len(values) <= 1:
        return values
    middle = len(values) // 2
    halves = values[:middle], values[middle:]
    left, right = (deque(_merge_sorted(each, swaps)) for each in halves)
    merged: list[Any] = []
    while left and right:
        swap = Functions.func_apply(swaps, [left[0], right[0]])
        # As JavaScript's `if`: an array or object is true even if it is empty.
        is_true = isinstance(swap, (list, dict)) or bool(swap)
        merged.append((right if is_true and swap is not Utils.NULL_VALUE else left).popleft())
    return [*merged, *left, *right]


def replace(text: Any, pattern: Any, replacement: Any, limit: Any = None) -> Any:
    """Return ``$replace(text, pattern, replacement, limit)``."""
    if text is None:
        return None
    if limit is not None and (not _is_number(limit) or limit < 0):
        raise refusal("the fourth argument of $replace must be a number that is not negative")
    most = -1 if limit is None else math.ceil(limit)
    if isinstance(pattern, str):
        if not pattern or not isinstance(replacement, str):
            raise refusal("$replace needs a text that is not empty, and a text to put in its place")
        return text.replace(pattern, replacement, most)
    left = [most]

    def replaced(match: re.Match[str]) -> str:
        if not left[0]:
            return match.group()
        left[0] -= 1
        if isinstance(replacement, str):
            return _filled(replacement, match)
        told = Functions.func_apply(replacement, [match_object(match)])
        if not isinstance(told, str):
            raise JException("D3012", -1)
        return told

    return _as_pattern(pattern, "$replace").sub(replaced, text)


def _filled(template: str, match: re.Match[str]) -> str:
    """Return a replacement with its ``$1``: as many digits as there can be groups, or one less."""
    groups = match.groups()
    most = len(str(len(groups)))

    def told(found: re.Match[str]) -> str:
        digits = found[1]
        if digits in ("$", "0"):
            return "$" if digits == "$" else match.group()
        index, rest = int(digits[:most]), digits[most:]
        if most > 1 and index > len(groups):
            index, rest = int(digits[: most - 1]), digits[most - 1 :]
        return (groups[index - 1] or "" if 0 < index <= len(groups) else "") + rest

    return re.sub(rf"\$(\$|0|[1-9][0-9]{{0,{most - 1}}})", told, template)


def split(text: Any, separator: Any, limit: Any = None) -> Any:
    """Return ``$split(text, separator, limit)``; the groups of a pattern are no parts."""
    if text is None or isinstance(separator, str):
        return Functions.split(text, separator, limit)
    if limit is not None and (not _is_number(limit) or limit < 0):
        raise refusal("the third argument of $split must be a number that is not negative")
    parts = _as_pattern(separator, "$split").split(text)
    return parts if limit is None else parts[: math.ceil(limit)]


def match_object(match: re.Match[str]) -> dict[str, Any]:
    return {
        "match": match.group(),
        "start": match.start(),
        "end": match.end(),
        "groups": list(match.groups()),
    }


def match_chain(matches: Iterator[re.Match[str]]) -> dict[str, Any] | None:
    """Return the first match, whose ``next()`` is the second, and so on."""
    match = next(matches, None)
    if match is None:
        return None
    return {**match_object(match), "next": Jsonata.JLambda(lambda: match_chain(matches))}


def format_number(value: Any, picture: Any, options: Any = None) -> Any:
    """Return ``$formatNumber``; refuse a picture whose exponent jsonata counts wrong."""
    if isinstance(picture, str) and _EXPONENT_WITHOUT_DIGIT.match(picture):
        raise refusal(f"$formatNumber needs a digit before the e of its picture {picture}")
    return Functions.format_number(value and _Decimal(str(value)), picture, options)


class _Decimal(Decimal):
    """A number that is multiplied and rounded as by JSONata."""

    def __mul__(self, other: Any) -> "_Decimal":
        return _Decimal(str(float(self) * float(other)))

    def quantize(self, exp: Any, *_args: Any, **_options: Any) -> Decimal:
        return super().quantize(exp, ROUND_HALF_EVEN)


def format_integer(value: Any, picture: Any) -> Any:
    """Return ``$formatInteger``; refuse a number that JavaScript does not know exactly."""
    if _is_number(value) and abs(value) > values.EXACT:
        raise refusal(f"$formatInteger takes whole numbers up to {values.EXACT}")
    return Functions.format_integer(value and math.floor(value), picture)


def to_millis(timestamp: Any, picture: Any = None) -> Any:
    """Return ``$toMillis(timestamp, picture)``; a time without a zone is UTC."""
    if timestamp is None:
        return None
    if picture is None:
        return _iso_millis(timestamp)
    # A picture without a year is completed from today's date.
    if all(mark[1] != "Y" for mark in _MARKER.finditer(picture)):
        raise refusal("$toMillis needs a picture with a year ([Y]), or the answer depends on today")
    with warnings.catch_warnings():
        # It reads today's date (and does not use it) by a function that Python 3.12 deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        return Functions.datetime_to_millis(timestamp, picture)


def _iso_millis(timestamp: str) -> int:
    found = _ISO_8601.fullmatch(timestamp)
    if found is None:
        raise refusal(
            f'$toMillis reads 2018-02-03T11:15:33Z and its kind, not "{timestamp}"; '
            "another form needs a picture as the second argument"
        )
    numbers = {name: int(found[name] or least) for name, least in _LEAST.items()}
    try:
        moment = datetime(**numbers, tzinfo=UTC)
    except ValueError as error:
        raise refusal(f'$toMillis: "{timestamp}" is no time ({error})') from None
    ahead = timedelta(hours=int(found["ahead"] or 0), minutes=int(found["ahead_minutes"] or 0))
    seconds = moment + (ahead if found["sign"] == "-" else -ahead) - _EPOCH
    return seconds // timedelta(milliseconds=1) + int((found["fraction"] or "")[:3].ljust(3, "0"))


def _as_pattern(pattern: Any, function: str) -> JavaScriptPattern:
    if not isinstance(pattern, JavaScriptPattern):
        raise refusal(f"{function} needs a text or a regular expression as its second argument")
    return pattern


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def add_up(numbers: Any) -> Any:
    """Return ``$sum``, rounded after each addition; from Python 3.12 on `sum` rounds once."""
    return None if numbers is None else reduce(operator.add, numbers, 0)


_SIGNATURES = {
    "string": (string, "<x-b?:s>"),
    "number": (number, "<(nsb)-:n>"),
    "count": (count, "<x:n>"),
    "sum": (add_up, "<a<n>:n>"),
    "average": (lambda numbers: add_up(numbers) / len(numbers) if numbers else None, "<a<n>:n>"),
    "lowercase": (lambda text: text and text.lower(), "<s-:s>"),
    "distinct": (distinct, "<x:x>"),
    "sort": (sort, "<af?:a>"),
    "replace": (replace, "<s-(sf)(sf)n?:s>"),
    "split": (split, "<s-(sf)n?:a<s>>"),
    "formatNumber": (format_number, "<n-so?:s>"),
    "formatInteger": (format_integer, "<n-s:s>"),
    "toMillis": (to_millis, "<s-s?:n>"),
}
OURS = {
    name: Jsonata.JNativeFunction(name, signature, SimpleNamespace(**{name: function}), None)
    for name, (function, signature) in _SIGNATURES.items()
}
"""Our functions by their names, for ``Jsonata.register_function``."""


def plain_value(value: Any) -> Any:
    """Return what jsonata gave as JSON; undefined is None."""
    if value is Utils.NULL_VALUE:
        return None
    if isinstance(value, dict):
        return {str(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise refusal("its value is no JSON")
