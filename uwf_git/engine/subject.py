"""Subjects: a step in a few words, for the log."""

import json
from collections.abc import Iterator
from typing import Any

# Fields in which roles usually summarize themselves, most telling first.
_TELLING = (
    "summary", "title", "message", "verdict", "reason", "why", "feedback", "decision", "status",
    "result",
)  # fmt: skip
_NOT_PROSE = ("```", "---", "{", "[", "<")

_LONGEST = 200
_MOST_READ = 10_000


def describe_step(meta: Any, content: str) -> str:
    """Return one line about a result: a summary in its meta, or the beginning of its text."""
    if isinstance(meta, dict):
        for field in _TELLING:
            value = meta.get(field)
            if isinstance(value, str) and first_line(value):
                return first_line(value)
    line = first_line(content)
    if line and not line.startswith(_NOT_PROSE):
        return line
    return _shortened(render_meta(meta))


def render_meta(meta: Any) -> str:
    """Return *meta* as JSON on one line."""
    return json.dumps(meta, ensure_ascii=False, separators=(", ", ": "))


def first_line(text: str) -> str:
    """Return the first line of *text* that is not empty, shortened; "" if there is none."""
    return next((_shortened(line) for line in _list_lines(text) if line), "")


def list_quotes(text: str) -> Iterator[str]:
    """Return what a subject may quote of *text*: its first line, and what old versions took for it.

    They did not shorten it, and took an empty heading.
    """
    for line in _list_lines(text):
        yield _shortened(line)
        yield line
        if line:
            return


def _list_lines(text: str) -> Iterator[str]:
    """Return the lines of *text* that are not blank, without the marks of headings."""
    for line in text[:_MOST_READ].splitlines():
        if line.strip():
            yield line.strip().lstrip("# ")


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def count_steps(number: int) -> str:
    """Format a number of steps: `1 step`, `2 steps`."""
    return f"{number} {'step' if number == 1 else 'steps'}"
