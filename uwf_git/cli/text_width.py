"""How wide text is on a terminal.

Owns: the counting of columns. Knows nothing of: tables, streams.
Source: https://www.unicode.org/reports/tr11/ (East Asian width: W and F take two columns).
"""

from unicodedata import category, east_asian_width

_ELLIPSIS = "…"
# Marks that stand upon the character before them, and format characters such as joiners.
_NO_COLUMN = {"Mn", "Me", "Cf"}


def display_width(text: str) -> int:
    """Count the columns that *text* takes; it must hold no controls."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def shorten(text: str, width: int) -> str:
    """Give *text* in at most *width* columns; what is cut off leaves an ellipsis."""
    if display_width(text) <= width:
        return text
    room = width - 1
    kept: list[str] = []
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + _ELLIPSIS


def _columns(character: str) -> int:
    if east_asian_width(character) in "WF":
        return 2
    return 0 if category(character) in _NO_COLUMN else 1
