"""Front matter: YAML between two lines of dashes, then text. Engine and kit share this one reader.

The text after the block is kept character by character.
"""

from typing import NamedTuple

from uwf_git.errors import AgentFailed

_BYTE_ORDER_MARK = "\ufeff"
_RULE = "---"


class FrontMatterUnclosed(AgentFailed):
    """No second line of dashes closes the front matter."""

    code = "front-matter-unclosed"

    def __init__(self, line: int) -> None:
        super().__init__(f"the front matter that begins on line {line} has no closing ---")


class FrontMatter(NamedTuple):
    """The parts of a text that begins with front matter."""

    source: str
    """The YAML between the dashes."""

    content: str
    """The text after the line of the closing dashes."""

    line: int
    """The line of the text on which the YAML begins, from 1."""


def split_front_matter(text: str) -> FrontMatter | None:
    """Split *text*; return None if it does not begin with a line of three dashes.

    A byte order mark and blank lines before it are skipped: models and editors add them.

    Raises:
        FrontMatterUnclosed
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
    """Return start and number of the first line that is not blank."""
    position, line = (1 if text.startswith(_BYTE_ORDER_MARK) else 0), 1
    while position < len(text):
        content, after = _line_at(text, position)
        if content.strip(" \t\r"):
            break
        position, line = after, line + 1
    return position, line


def _line_at(text: str, start: int) -> tuple[str, int]:
    """Return the line at *start* without its line feed, and the start of the next line."""
    end = text.find("\n", start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + 1)


def _is_rule(line: str) -> bool:
    return line.startswith(_RULE) and not line[len(_RULE) :].strip(" \t\r")
