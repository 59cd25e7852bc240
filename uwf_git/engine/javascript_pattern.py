r"""Regular expressions as JavaScript reads them, on Python's `re`: translated, or refused.

JSONata is defined by JavaScript, and agents' texts show the difference: Python's ``$`` holds before
a last line break, its ``\d`` and ``\w`` know all scripts, its ``.`` matches ``\r``.
"""

import re
from collections.abc import Callable, Iterator

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
    **{escape: f"[{members}]" for escape, members in _CLASSES.items()},
}

_BY_LINE = {"^": f"(?<![^{_LINE_ENDS}])", "$": rf"(?=[{_LINE_ENDS}]|\Z)"}

_TOKEN = re.compile(
    r"(?P<set>\[\^?(?:\\.|[^\]\\])*\])"
    r"|(?P<escape>\\.)"
    r"|(?P<group>\(\?(?!:|=|!|<=|<!))"
    r"|(?P<twice>(?:[*+?]|\{\d+(?:,\d*)?\})\+)"
    r"|(?P<other>[.^$]|\{,)",
    re.DOTALL,
)

_IN_SET = re.compile(r"(?P<before>-?)(?P<class>\\[dDsSwW])(?P<after>-?)|\\.", re.DOTALL)

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
        parts: list[str] = []
        start = 0
        for match in self.finditer(text):
            parts.append(text[start : match.start()])
            start = match.end()
        return [*parts, text[start:]]

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
        if token["set"] is not None:
            return _IN_SET.sub(_set_member, text)
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
