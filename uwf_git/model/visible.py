"""Escape the characters in foreign text that a terminal or a page would obey instead of showing.

JSON on standard output does not pass here: json_text.py escapes without changing its values.
"""

import re

# C0 and C1 controls (ESC begins every terminal command), DEL, marks that change the direction of
# writing (https://trojansource.codes), line ends other than newline, lone surrogates, and the two
# codes that no XML document may hold.
_CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff"
)
_IN_BLOCK = re.compile(f"[{_CONTROL}]")
_IN_LINE = re.compile(f"[{_CONTROL}\t\n]")
# ECMA-48, "select graphic rendition": colours and the like.
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_BREAKS = re.compile(r"\s*\n\s*")


def visible_line(text: str) -> str:
    """Return *text* on one line: controls, newlines and tabs are escaped, as in Python."""
    return _IN_LINE.sub(_spell, text)


def visible_block(text: str) -> str:
    """Return *text* with its lines and tabs, and every other control escaped."""
    return _IN_BLOCK.sub(_spell, text.replace("\r\n", "\n"))


def without_colours(text: str) -> str:
    """Return *text* without the sequences that colour it; every other control stays."""
    return _COLOUR.sub("", text)


def one_line(message: str) -> str:
    """Return a message as a single line: its lines are joined."""
    return visible_line(_BREAKS.sub(" ", message.strip()))


def _spell(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
