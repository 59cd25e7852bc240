"""Front matter: YAML between two lines of dashes, and the text that follows.

Owns: where the block begins and ends, for the engine and for the kit alike: two readers of one
format drift apart.
Knows nothing of: YAML, what the fields mean.
Always true: the text after the block is kept character by character.
"""

from typing import NamedTuple

from uwf_git.errors import AgentFailed

_BYTE_ORDER_MARK = "\ufeff"
_RULE = "---"


class FrontMatterUnclosed(AgentFailed):
    """The text begins with a line of dashes, and no second one ends the block."""

    code = "front-matter-unclosed"

    def __init__(self, line: int) -> None:
        super().__init__(f"the front matter that begins on line {line} has no closing ---")


class FrontMatter(NamedTuple):
    """A text that begins with front matter, taken apart."""

    source: str
    """The YAML between the dashes."""

    content: str
    """All that follows the closing dashes and their line break."""

    line: int
    """The line of the whole text, from 1, on which the YAML begins."""


def split_front_matter(text: str) -> FrontMatter | None:
    """Take *text* apart, or give None if it does not begin with a line of three dashes.

    A byte order mark and blank lines before it are forgiven: models and editors add them, and
    nothing else can be meant.

    Raises:
        FrontMatterUnclosed: it begins, but never ends.
    """
    start, line = _skip_blank(text)
    opening, position = _line_at(text, start)
    if not _is_rule(opening):
        return None
    begin = position
    while position < len(text):
        closing, after = _line_at(text, position)
        if _is_rule(closing):
            return FrontMatter(text[begin:position], text[after:], line + 1)
        position = after
    raise FrontMatterUnclosed(line)


def _skip_blank(text: str) -> tuple[int, int]:
    """Find the first line that says something: where it starts, and its number."""
    position, line = (1 if text.startswith(_BYTE_ORDER_MARK) else 0), 1
    while position < len(text):
        content, after = _line_at(text, position)
        if content.strip(" \t\r"):
            break
        position, line = after, line + 1
    return position, line


def _line_at(text: str, start: int) -> tuple[str, int]:
    """Give the line that starts at *start* without its line feed, and where the next starts."""
    end = text.find("\n", start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + 1)


def _is_rule(line: str) -> bool:
    return line.startswith(_RULE) and not line[len(_RULE) :].strip(" \t\r")
