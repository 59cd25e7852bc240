"""Markdown: a thread as a person would read it.

Owns: the layout of the document. Knows nothing of: stores; it is given plain values.
Always true: the text of an agent cannot break out of its place: its headings are lowered
below ours, and what is not prose is fenced.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_HEADING = re.compile(r"^(#{1,6})(?=\s)")
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_DEEPEST_HEADING = 6
_LOWERED_BY = 2
_MOST_ITEMS = 20


class Entry(NamedTuple):
    """One event of a thread."""

    title: str
    """What the heading says, in one line."""

    facts: tuple[str, ...] = ()
    """What stands in small print below it."""

    meta: Any = None
    text: str = ""
    """What an agent or a person said."""


def render_document(title: str, facts: Sequence[str], task: str, entries: Sequence[Entry]) -> str:
    """Write a thread as Markdown."""
    parts = [f"# {_escape(title)}", _small_print(facts), _quote(task)]
    for entry in entries:
        parts += [
            f"## {_escape(entry.title)}",
            _small_print(entry.facts),
            _meta(entry.meta),
            lower_headings(entry.text),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def lower_headings(text: str) -> str:
    """Give *text* with its headings two levels lower, leaving fenced code alone.

    A fence that the text leaves open is closed, or it would swallow what follows.
    """
    lines: list[str] = []
    fence = ""
    for line in text.strip("\n").split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            heading = _HEADING.match(line)
            if heading:
                level = min(len(heading[1]) + _LOWERED_BY, _DEEPEST_HEADING)
                line = "#" * level + line[heading.end() :]  # noqa: PLW2901 (the same line)
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines).strip("\n")


def fence_text(text: str) -> str:
    """Give *text* as a block of code, whatever fences it holds itself."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.strip(chr(10))}\n{fence}"


def _meta(meta: Any) -> str:
    if meta is None or meta == {}:
        return ""
    if not isinstance(meta, dict):
        return _json_block(meta)
    lines: list[str] = []
    for name, value in meta.items():
        lines += _field(name, value)
    return "\n".join(lines)


def _field(name: str, value: Any) -> list[str]:
    label = f"- **{_escape(str(name))}**:"
    if value in ([], {}, "", None):
        return [f"{label} none"]
    if isinstance(value, list) and all(_is_short(item) for item in value):
        left_out = len(value) - _MOST_ITEMS
        more = [f"  - … and {left_out} more"] if left_out > 0 else []
        return [label, *(f"  - {_inline(item)}" for item in value[:_MOST_ITEMS]), *more]
    if isinstance(value, str) and "\n" in value:
        return [label, *(f"  > {line}".rstrip() for line in value.strip().split("\n"))]
    return [f"{label} {_inline(value)}"]


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if _is_short(value) else f"`{text}`"


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and "\n" not in str(value)


def _json_block(value: Any) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def _small_print(facts: Sequence[str]) -> str:
    return " · ".join(fact for fact in facts if fact)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def _escape(title: str) -> str:
    return " ".join(title.split())
