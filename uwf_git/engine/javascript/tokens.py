"""The tokenizer: the text of an expression as JavaScript's tokens."""

import re
from typing import NamedTuple, NoReturn

from uwf_git.engine.javascript.characters import LINE_ENDS, SPACES, name_end, to_units
from uwf_git.engine.javascript.failure import ExpressionFailed

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
_LAST_POINT = 0x10FFFF


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
    """Return the tokens from *start*, the last of kind "end", and the position of that.

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
            after_line_end = self._skip_space()
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

    def _skip_space(self) -> bool:
        found = _SPACE.match(self._source, self.at)
        if found is None:
            return False
        self.at = found.end()
        return any(each in LINE_ENDS for each in found[0])

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
        return number_value(found[0])

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
        if found is None or code > _LAST_POINT:
            self._refuse(f"unknown escape {self._source[self.at : self.at + 2]}", self.at)
        self.at = found.end()
        if digits:
            return chr(code)
        if found["other"]:
            return _CONTROL.get(found["other"], found["other"])
        return "\0" if found["zero"] else ""

    def _refuse(self, problem: str, at: int) -> NoReturn:
        raise ExpressionFailed(self._source, problem, at)


def number_value(literal: str) -> float:
    """Return the double of a numeric literal, rounded to the nearest as JavaScript does."""
    if literal[:2] in {"0x", "0X"}:
        return to_double(int(literal, 16))
    return float(literal)


def to_double(number: float) -> float:
    """Return the nearest double; beyond all of them that is infinite, as in JSON.parse."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
