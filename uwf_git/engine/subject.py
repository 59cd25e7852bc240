"""Subjects: a step in a few words, for the log."""

import json
from typing import Any

# Fields in which roles usually summarize themselves, most telling first.
_TELLING = (
    "summary", "title", "message", "verdict", "reason", "why", "feedback", "decision", "status",
    "result",
)  # fmt: skip
_NOT_PROSE = ("```", "---", "{", "[", "<")

_LONGEST = 200


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
    return _shortened(json.dumps(meta, ensure_ascii=False, separators=(", ", ": ")))


def first_line(text: str) -> str:
    """Return the first line of *text* that is not empty, shortened; "" if there is none."""
    for line in text[:10_000].splitlines():
        said = line.strip().lstrip("# ")
        if said:
            return _shortened(said)
    return ""


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def count_steps(number: int) -> str:
    """Format a number of steps: `1 step`, `2 steps`."""
    return f"{number} {'step' if number == 1 else 'steps'}"
