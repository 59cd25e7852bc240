"""Subjects: a step in a few words, for whoever reads the log.

Owns: which words of a result say best what happened. Knows nothing of: commits.
"""

import json
from typing import Any

# What authors of roles call the one-line account of a step, most telling first.
_TELLING = (
    "summary", "title", "message", "verdict", "reason", "why", "feedback", "decision", "status",
    "result",
)  # fmt: skip
_NOT_PROSE = ("```", "---", "{", "[", "<")

_LONGEST = 200


def describe_step(meta: Any, content: str) -> str:
    """Give one line about a result: what its meta says of itself, or how its text begins."""
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
    """Give the first line of *text* that says something, shortened; "" if none does."""
    for line in text[:10_000].splitlines():
        said = line.strip().lstrip("# ")
        if said:
            return _shortened(said)
    return ""


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def count_steps(number: int) -> str:
    """Write a number of steps: `1 step`, `2 steps`."""
    return f"{number} {'step' if number == 1 else 'steps'}"
