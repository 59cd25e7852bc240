"""Find JSON records in a program's output, and read values from them whatever their shape.

Any bytes give some records or none, never an error: programs print warnings before the JSON,
half a line at the end, and a number where a text should be.
"""

import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from uwf_git.agents.command_line import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.agents.files import read_left_file
from uwf_git.model.node import MAX_SAFE_INTEGER

JsonT = TypeVar("JsonT", str, int, float, bool, list[Any], dict[str, Any])


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


# What is no number to JSON, or to a float, is null.
_DECODER = json.JSONDecoder(parse_constant=lambda _name: None, parse_float=_finite)

_BEGINNING = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_ENDING = re.compile(r"[ \t\r]*(?:\n|\Z)")

# A truncated document may hold many beginnings, each of which is parsed to the end of the text.
_MOST_FAILURES = 1_000


def parse_lines(output: bytes) -> list[dict[str, Any]]:
    """Return the objects of output with a JSON object a line; skip other lines."""
    found = []
    for line in output.decode(errors="replace").split("\n"):
        value = _parse(line.strip(" \t\r\ufeff"))
        if isinstance(value, dict):
            found.append(value)
    return found


def parse_last(output: bytes) -> Any:
    """Return the last JSON object or array that fills whole lines, among warnings; or None."""
    text = output.decode(errors="replace").lstrip("\ufeff")
    found: Any = None
    failures = 0
    match = _BEGINNING.search(text)
    while match and failures < _MOST_FAILURES:
        value, end = _parse_beginning(text, match.end() - 1)
        if value is None:
            failures += 1
        found = found if value is None else value
        match = _BEGINNING.search(text, end)
    return found


def read_left(*path: str) -> bytes | None:
    """Return what a program has left in the file at *path*; None without such a file."""
    try:
        return read_left_file(os.path.join(*path), most_bytes=DEFAULT_MAX_OUTPUT_BYTES).content
    except OSError:
        return None


def read_last(*path: str) -> Any:
    """Return the last JSON object or array in the file at *path*; None without such a file."""
    return parse_last(read_left(*path) or b"")


def find(record: Any, kind: type[JsonT], *path: str) -> JsonT | None:
    """Return the value in *record* at *path* if it is of the type *kind*, else None.

    An int counts as a float; a bool counts as neither. A number that no node holds is none.
    """
    for name in path:
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    if isinstance(record, bool) and kind is not bool:
        return None
    if isinstance(record, int | float) and not abs(record) <= MAX_SAFE_INTEGER:
        return None
    if kind is float and isinstance(record, int):
        return kind(record)
    return record if isinstance(record, kind) else None


def find_last(records: Sequence[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    """Return the last record whose ``type`` is *kind*, or None."""
    return next((each for each in reversed(records) if each.get("type") == kind), None)


def find_first(records: Sequence[dict[str, Any]], *path: str) -> str | None:
    """Return the first text at *path* of a record, or None."""
    return next((text for each in records if (text := find(each, str, *path))), None)


def read_usage(record: Any, **paths: str) -> dict[str, Any]:
    """Return the usage in *record*: each number under its name, from its path (``usage.input``)."""
    # All others are whole.
    kinds = {name: float if name in {"costUsd", "premiumRequests"} else int for name in paths}
    return build_usage(
        **{name: find(record, kinds[name], *path.split(".")) for name, path in paths.items()}
    )


def tool_event(name: Any, given: Any, output: Any, *, ok: bool) -> dict[str, Any]:
    """Return the event of a trace for a call of a tool."""
    return {"type": "tool", "name": name, "input": given, "output": output, "ok": ok}


def build_usage(**found: float | None) -> dict[str, Any]:
    """Return the numbers that are not None, nor below zero: those would undo a thread's limits."""
    return {name: value for name, value in found.items() if value is not None and value >= 0}


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _parse_beginning(text: str, start: int) -> tuple[Any, int]:
    """Parse the document that begins at *start*; return it, and where to search on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1
    # A document ends at the end of a line; anything else is part of a text.
    return (value, end) if _ENDING.match(text, end) else (None, end)
