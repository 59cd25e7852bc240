"""Text from agents, files and people, made safe to show.

Owns: which characters a terminal would obey instead of showing, and how they are spelled instead.
Knows nothing of: documents, streams. Standard output as JSON does not come here: there every
value has to arrive as it is.
"""

import re

# C0 and C1 controls (ESC begins every terminal command), DEL, the marks that turn the direction
# of writing (https://trojansource.codes), the line ends that are no newline, lone surrogates.
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_BLOCK = re.compile(f"[{_CONTROL}]")
_IN_LINE = re.compile(f"[{_CONTROL}\t\n]")
_BREAKS = re.compile(r"\s*\n\s*")


def visible_line(text: str) -> str:
    """Give *text* on one line: controls, newlines and tabs are spelled out, as in Python."""
    return _IN_LINE.sub(_spell, text)


def visible_block(text: str) -> str:
    """Give *text* with its lines and tabs, and every other control spelled out."""
    return _IN_BLOCK.sub(_spell, text.replace("\r\n", "\n"))


def one_line(message: str) -> str:
    """Give a message as the single line that it should have been: its lines are joined."""
    return visible_line(_BREAKS.sub(" ", message.strip()))


def _spell(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
