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
# Strings: most commands meet nothing that makes it worth while to compile them.
_IN_BLOCK = f"[{_CONTROL}]"
_IN_LINE = f"[{_CONTROL}\t\n]"
# ECMA-48, "select graphic rendition": colours and the like.
_COLOUR = r"\x1b\[[0-9;:]{0,40}m"
_BREAKS = r"\s*\n\s*"


def visible_line(text: str) -> str:
    """Return *text* on one line: controls, newlines and tabs are escaped, as in Python."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_IN_LINE, _spell, text)


def visible_block(text: str) -> str:
    """Return *text* with its lines and tabs, and every other control escaped."""
    return re.sub(_IN_BLOCK, _spell, text.replace("\r\n", "\n"))


def without_colours(text: str) -> str:
    """Return *text* without the sequences that colour it; every other control stays."""
    return re.sub(_COLOUR, "", text)


def one_line(message: str) -> str:
    """Return a message as a single line: its lines are joined."""
    return visible_line(re.sub(_BREAKS, " ", message.strip()))


def _spell(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
