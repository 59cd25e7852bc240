"""Values as JavaScript has them: undefined, texts, numbers, and what an evaluation may cost."""

import math
import re
import sys
from array import array
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, NoReturn

from uwf_git.errors import Refused

# The one error of expressions, for texts that cannot be read and for those without an answer.

_SHOWN = 200


class ExpressionFailed(Refused):
    """An expression or template cannot be read or answered, at `position` (from 1)."""

    code = "expression-failed"

    def __init__(self, source: str, problem: str, at: int | None) -> None:
        problem = _safe(problem)
        self.problem = problem
        self.position = None if at is None else at + 1
        line = " ".join(source[: 2 * _SHOWN].split())
        shown = _safe(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")
        where = "" if at is None else f" (at character {self.position})"
        super().__init__(
            f"expression `{shown}` failed: {problem}{where}",
            expression=shown,
            problem=problem,
            position=self.position,
        )


class Unanswerable(Exception):
    """What an operation says that has no answer; whoever knows the place adds it."""


def _safe(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# JavaScript's undefined, which JSON does not have.


class Undefined(Enum):
    UNDEFINED = "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined.UNDEFINED
"""The value of a member that is not there. It is false."""


# Characters as JavaScript sees them: white space, names, and texts as UTF-16 units.
#
# A text here is a str with one character for each UTF-16 unit, so that lengths, indexes, order
# and joining are Python's own. `to_units` and `from_units` stand at the doors.

LINE_ENDS = "\n\r\u2028\u2029"
SPACES = (
    "\t\v\f \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u202f\u205f\u3000\ufeff" + LINE_ENDS
)

_WORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum "
    "eval export extends false finally for function if implements import in instanceof interface "
    "let new null package private protected public return static super switch this throw true try "
    "typeof var void while with yield undefined NaN Infinity Array Object"
)
RESERVED = frozenset(_WORDS.split())
"""What cannot be a name: JavaScript's words in strict mode, and what the grammar uses itself."""

# Of this machine, as arrays have it; without a name a byte order mark would be taken away.
_UTF_16 = f"utf-16-{sys.byteorder[0]}e"

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
SURROGATE = re.compile("[\ud800-\udfff]")


def to_units(text: str) -> str:
    """Return *text* with a pair of surrogates for each character beyond U+FFFF."""
    if text.isascii() or not _ASTRAL.search(text):
        return text
    return "".join(map(chr, array("H", text.encode(_UTF_16, "surrogatepass"))))


def from_units(text: str) -> str:
    """Return *text* with each pair of surrogates as one character; lone surrogates stay."""
    if not has_surrogate(text):
        return text
    return array("H", map(ord, to_units(text))).tobytes().decode(_UTF_16, "surrogatepass")


def has_surrogate(text: str) -> bool:
    """Check whether *text* has a surrogate; in a result of `from_units` it is a lone one."""
    return not text.isascii() and SURROGATE.search(text) is not None


def name_end(text: str, at: int) -> int:
    """Return where the name that begins at *at* ends; *at* if no name does."""
    if at == len(text) or not (text[at] in "$_" or text[at].isidentifier()):
        return at
    end = at + 1
    while end < len(text) and (text[end] in "$\u200c\u200d" or f"_{text[end]}".isidentifier()):
        end += 1
    return end


# The tokenizer: the text of an expression as JavaScript's tokens.

SOURCE_BYTES = 16 * 1024
"""The longest expression, in UTF-8."""

_SPACE = re.compile(rf"(?:[{SPACES}]|//[^{LINE_ENDS}]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+"
    r"|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
# All of JavaScript's, so that none is read as two of ours.
_PUNCTUATOR = re.compile(
    r">>>=|\.\.\.|[=!]==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|[=!<>+\-*/%&|^]=|&&|\|\||\?\?"
    r"|\?\.(?![0-9])|\+\+|--|<<|>>|\*\*|[{}()\[\].;,<>+\-*/%&|^!~?:=@#]"
)
_PLAIN = {
    '"': re.compile(r'[^"\\\n\r]+'),
    "'": re.compile(r"[^'\\\n\r]+"),
    "`": re.compile(r"(?:[^`\\\r$]|\$(?!\{))+"),
}
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r\n|[\n\r\u2028\u2029])|x(?P<byte>[0-9a-fA-F]{2})|u(?P<unit>[0-9a-fA-F]{4})"
    r"|u\{0*(?P<point>[0-9a-fA-F]{1,6})\}|(?P<zero>0)(?![0-9])|(?P<other>[^xu0-9]))",
    re.DOTALL,
)
_CONTROL = {"n": "\n", "t": "\t", "b": "\b", "v": "\v", "f": "\f", "r": "\r"}


class Token(NamedTuple):
    """A token; `kind` is the punctuator itself, or number, text, name, end, or of a template.

    The chunks of a template literal are "template" (ends before a `${`), "template.next" (between
    two), "template.last", or "template.whole" if it has no `${`.
    """

    kind: str
    value: str | float
    position: int
    after_line_end: bool = False


def tokenize(source: str, start: int = 0, *, in_template: bool = False) -> tuple[list[Token], int]:
    """Return the tokens from *start*, the last of kind "end", and the position of "end".

    With *in_template* they end before the `}` that closes the `${` before *start*.
    """
    scanner = _Scanner(source, start)
    return scanner.run(closing=in_template), scanner.at


class _Scanner:
    def __init__(self, source: str, start: int) -> None:
        self._source = source
        self._start = start
        self.at = start
        # How many `${` of template literals are open; the grammar has no other use of braces.
        self._open = 0

    def run(self, *, closing: bool) -> list[Token]:
        tokens = []
        while True:
            space = _SPACE.match(self._source, self.at)
            after_line_end = space is not None and any(each in LINE_ENDS for each in space[0])
            self.at = self.at if space is None else space.end()
            if self.at - self._start > SOURCE_BYTES:
                self._refuse(f"it is longer than {SOURCE_BYTES} bytes", self._start)
            ended = self.at == len(self._source)
            if ended and closing:
                self._refuse("`${` has no `}`", self._start)
            if ended or (closing and not self._open and self._source[self.at] == "}"):
                tokens.append(Token("end", "", self.at, after_line_end))
                break
            tokens.append(self._next(after_line_end=after_line_end))
        text = self._source[self._start : self.at]
        if len(text.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
            self._refuse(f"it is longer than {SOURCE_BYTES} bytes", self._start)
        return tokens

    def _next(self, *, after_line_end: bool) -> Token:
        source, start = self._source, self.at
        first = source[start]
        if first in "\"'":
            return Token("text", self._text(first), start, after_line_end)
        if first == "`" or (first == "}" and self._open):
            return self._template(first, after_line_end=after_line_end)
        number = _NUMBER.match(source, start)
        if number:
            return Token("number", self._number(number), start, after_line_end)
        self.at = name_end(source, start)
        if self.at > start:
            return Token("name", source[start : self.at], start, after_line_end)
        found = _PUNCTUATOR.match(source, start)
        if found is None:
            self._refuse(f"unexpected {source[start]!r}", start)
        if source.startswith("/*", start):
            self._refuse("a comment has no end", start)
        self.at = found.end()
        return Token(found[0], "", start, after_line_end)

    def _number(self, found: re.Match[str]) -> float:
        self.at = found.end()
        rest = self._source[self.at : self.at + 1]
        if rest and (rest in "0123456789\\" or name_end(rest, 0)):
            self._refuse("a number is decimal (1, .5, 1e3) or hexadecimal (0x1F)", found.start())
        literal = found[0]
        return to_double(int(literal, 16)) if literal[:2] in {"0x", "0X"} else float(literal)

    def _template(self, first: str, *, after_line_end: bool) -> Token:
        start = self.at
        value = self._text("`")
        opens = self._source[self.at - 1] == "{"
        self._open += opens - (first == "}")
        begins, goes_on = ("template", "template.whole"), ("template.next", "template.last")
        kind = (begins if first == "`" else goes_on)[not opens]
        return Token(kind, value, start, after_line_end)

    def _text(self, quote: str) -> str:
        """Read on to the end of a text, or of a template's chunk."""
        start = self.at
        self.at += 1
        chunks: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self._source, self.at)
            if plain:
                chunks.append(plain[0])
                self.at = plain.end()
            here = self._source[self.at : self.at + 2]
            opens = quote == "`" and here == "${"
            if opens or here[:1] == quote:
                self.at += 2 if opens else 1
                return to_units("".join(chunks))
            if here[:1] == "\\":
                chunks.append(self._escape())
            elif quote == "`" and here[:1] == "\r":
                chunks.append("\n")
                self.at += 2 if here == "\r\n" else 1
            else:
                self._refuse(f"a text has no closing {quote}", start)

    def _escape(self) -> str:
        found = _ESCAPE.match(self._source, self.at)
        digits = found and (found["byte"] or found["unit"] or found["point"])
        code = int(digits, 16) if digits else 0
        if found is None or code > sys.maxunicode:
            self._refuse(f"unknown escape {self._source[self.at : self.at + 2]}", self.at)
        self.at = found.end()
        if digits:
            return chr(code)
        if found["other"]:
            return _CONTROL.get(found["other"], found["other"])
        return "\0" if found["zero"] else ""

    def _refuse(self, problem: str, at: int) -> NoReturn:
        raise ExpressionFailed(self._source, problem, at)


def to_double(number: float) -> float:
    """Return the nearest double; beyond all of them that is infinite, as in JSON.parse."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


# Numbers as JavaScript's doubles: to text, from text, and the two operators that Python bars.

EXACT = 2**53
"""Up to here a double is a whole number and its neighbours are too."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
BASED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_INFINITE = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}

# Number::toString writes digits from 1e-6 up to 1e21, with an exponent outside of that.
_MOST_DIGITS = 21
_MOST_ZEROS = 6


def number_text(number: float) -> str:
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
    if 0 < point <= _MOST_DIGITS:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{fraction}" if fraction else whole
    if -_MOST_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    first, rest = digits[0], digits[1:]
    return f"{first}{'.' if rest else ''}{rest}e{point - 1:+d}"


def text_number(text: str) -> float:
    text = text.strip(SPACES)
    if not text:
        return 0.0
    if _DECIMAL.fullmatch(text):
        return float(text)
    if BASED.fullmatch(text):
        return to_double(int(text, 0))
    return _INFINITE.get(text, math.nan)


def divided(left: float, right: float) -> float:
    """Return *left* / *right*, also by zero."""
    if right != 0:
        return left / right
    if left == 0 or left != left:  # noqa: PLR0124 (NaN)
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(left: float, right: float) -> float:
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


# The names that values have from their prototypes: node reads a function there, so we refuse.
#
# Of node 20, all years of ECMAScript so far; a name that is in no list is undefined.

_OF_OBJECTS = (
    "__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ __proto__ constructor "
    "hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf"
)
OBJECT = frozenset(_OF_OBJECTS.split())

_OF_ARRAYS = (
    "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat "
    "flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight "
    "reverse shift slice some sort splice toReversed toSorted toSpliced unshift values with"
)
ARRAY = frozenset(_OF_ARRAYS.split())

_OF_TEXTS = (
    "anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor "
    "fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match matchAll "
    "normalize padEnd padStart repeat replace replaceAll search slice small split startsWith "
    "strike sub substr substring sup toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase "
    "toWellFormed trim trimEnd trimLeft trimRight trimStart"
)
TEXT = frozenset(_OF_TEXTS.split())

NUMBER = frozenset({"toExponential", "toFixed", "toPrecision"})


# What one evaluation may cost: nodes, elements and characters are counted, not seconds.
#
# With these limits an evaluation ends within seconds and 200 MB on any machine, whatever the
# expression: no operation does work that is not counted before it is done.

EVALUATIONS = 100_000
"""Nodes of the tree that may be evaluated; an arrow's body counts for each element."""

TEXT_UNITS = 1 << 20
"""The longest text that may be made, in UTF-16 units."""

_ELEMENTS = 500_000
_CHARACTERS = 64 << 20

# What handling a character costs: a new character needs memory, pairs of surrogates need time.
_MAKING = 4
_PAIRING = 16

# CPython's search compares each character with each in short texts, and is linear in long ones.
_SHORT = 30_000
_COMPARED_AT_ONCE = 16


class Budget:
    """What is left of the limits; each method raises `Unanswerable` when one is used up."""

    def __init__(self, share: int = 1) -> None:
        """Begin with the limits, or with one of so many equal shares of them."""
        self._evaluations = EVALUATIONS // share
        self._elements = _ELEMENTS // share
        self._characters = _CHARACTERS // share

    @property
    def spent(self) -> float:
        """Which part of the limits is used up; 1 for each of them, if it began with all."""
        left = self._evaluations / EVALUATIONS
        left += self._elements / _ELEMENTS + self._characters / _CHARACTERS
        return 3 - left

    def evaluate(self) -> None:
        self._evaluations -= 1
        if self._evaluations < 0:
            raise Unanswerable(f"it takes more than {EVALUATIONS} evaluations")

    def visit(self, elements: int) -> None:
        self._elements -= elements
        if self._elements < 0:
            raise Unanswerable(f"it visits more than {_ELEMENTS} elements")

    def read(self, units: int) -> None:
        self._characters -= units
        if self._characters < 0:
            raise Unanswerable("it handles too much text")

    def make(self, units: int) -> None:
        """Count a text that is made; call before it is."""
        if units > TEXT_UNITS:
            raise Unanswerable(f"it makes a text of more than {TEXT_UNITS} characters")
        self.read(_MAKING * units)

    def pair(self, units: int) -> None:
        """Count a text whose surrogates are taken apart or put together."""
        self.read(_PAIRING * units)

    def search(self, units: int, sought: int) -> None:
        compared = units * sought // _COMPARED_AT_ONCE if units < _SHORT else 4 * units
        self.read(units + sought + compared)


# Values: what JavaScript makes of them without asking an object for a primitive.
#
# A value is None, UNDEFINED, a bool, a float, a str of UTF-16 units, an array (a list of the data
# or a tuple that an expression made) or an object (a Mapping of the data). `from_data` gives such
# a value for a piece of JSON data; what is inside an array or object of the data is still data.


def is_array(value: Any) -> bool:
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
    if is_array(value):
        return "an array"
    if isinstance(value, str):
        return f"the text {from_units(value[:40])!r}"
    return "an object" if isinstance(value, Mapping) else to_text(value)


def _is_nothing(value: Any) -> bool:
    return value is None or value is UNDEFINED
