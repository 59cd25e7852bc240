"""How wide text is, guessed: in pixels, on the safe side for common fonts, and in columns.

Source: the widths of DejaVu Sans Bold, the widest of the usual fonts without serifs, in hundredths
of the font's size.
"""

import math
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal

Face = Literal["bold", "plain", "mono"]

ELLIPSIS = "…"

_BY_WIDTH = {
    36: " 'ijl",
    42: ",-./:;IJ\\|·",
    48: "!()[]ft",
    54: '"*_`r‖',
    60: "?csz",
    66: "Lvxy“”",
    72: "0123456789$EFSTYabdeghknopqu{}",
    78: "ABCKPRVXZ▶",
    84: "#+<=>DGHNU^~✓✗→↺",
    90: "&OQ",
    96: "w",
    102: "%@M…",
    108: "m",
    114: "W",
}
_WIDTHS = {character: width for width, all_ in _BY_WIDTH.items() for character in all_}
_OTHERS = 110
_EMOJI = 140
_MONO = 61
_PLAIN = 0.92
_KNOWN_BELOW = "\u0250"
"""ASCII and the Latin letters: their guesses hold in any common font."""


def measure(text: str, size: int, face: Face) -> int:
    """Return the width of *text* in pixels: at least what common fonts need."""
    hundredths = sum(map(_mono_width if face == "mono" else _sans_width, text))
    return math.ceil(hundredths * size * (_PLAIN if face == "plain" else 1) / 100)


def is_sure(text: str) -> bool:
    """Check that a font can hardly be wider than was guessed: no rare script, no emoji."""
    return all(each < _KNOWN_BELOW or each in _WIDTHS or _is_ideograph(each) for each in text)


def columns(text: str) -> int:
    """Return the columns that *text* takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def cut(text: str, room: int, width: Callable[[str], int]) -> str:
    """Return *text* with an ellipsis where it would be wider than *room*, as *width* tells."""
    if width(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle] + ELLIPSIS) <= room else (low, middle - 1)
    return text[:low].rstrip() + ELLIPSIS


def wrap(text: str, room: int, indent: str = "") -> list[str]:
    """Return *text* in lines of at most *room* columns, all but the first after *indent*.

    They are broken between words; within one only if it is longer than a line.
    """
    lines, line, used = [], "", 0
    for piece in _pieces(text, room - len(indent)):
        wide = columns(piece)
        gap = 1 if line.strip() and not piece.startswith("\0") else 0
        if used and used + gap + wide > room:
            lines.append(line)
            line, used, gap = indent, len(indent), 0
        line += " " * gap + piece.removeprefix("\0")
        used += gap + wide
    return [*lines, line]


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield the words; longer ones in pieces, of which all but the first begin with a NUL."""
    for word in text.split():
        mark, rest = "", word
        while columns(rest) > room:
            size = _fitting(rest, room)
            yield mark + rest[:size]
            mark, rest = "\0", rest[size:]
        yield mark + rest


def _fitting(text: str, room: int) -> int:
    """Return how many characters of *text* fit, one at least."""
    used = 0
    for number, character in enumerate(text):
        used += _columns(character)
        if used > room:
            return max(number, 1)
    return len(text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _is_ideograph(character: str) -> bool:
    wide = unicodedata.east_asian_width(character) in {"W", "F"}
    return wide and unicodedata.category(character) in {"Lo", "Po", "Ps", "Pe", "Lm", "Lu", "Ll"}


def _sans_width(character: str) -> int:
    known = _WIDTHS.get(character)
    if known is not None:
        return known
    if _is_ideograph(character):
        return 100
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return _EMOJI
    return _OTHERS


def _mono_width(character: str) -> int:
    if character.isascii() or character in _WIDTHS:
        return _MONO
    return _sans_width(character)
