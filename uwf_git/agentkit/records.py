"""Records: JSON that a program printed, or left in a file, among whatever else it told.

Owns: finding the objects, and looking into them without trusting their shape.
Knows nothing of: any program's records.
Always true: any bytes give some objects or none, never an error: a warning before the JSON, half
a line at the end and a number where a text should be are all things that programs print.
"""

import json
import re
from typing import Any, TypeVar

Kind = TypeVar("Kind", str, int, float, bool, list[Any], dict[str, Any])

_DECODER = json.JSONDecoder()

_BEGINNING = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_ENDING = re.compile(r"[ \t\r]*(?:\n|\Z)")

# A document that was cut may hold many beginnings, each of which is read to the end of the text.
_MOST_FAILURES = 1_000


def parse_lines(output: bytes) -> list[dict[str, Any]]:
    """Give the objects of output that is one JSON object a line; other lines are left out."""
    found = []
    for line in output.decode(errors="replace").split("\n"):
        value = _parse(line.strip(" \t\r\ufeff"))
        if isinstance(value, dict):
            found.append(value)
    return found


def parse_last(output: bytes) -> Any:
    """Give the last JSON object or array that fills whole lines; None if there is none.

    That is how a program prints one document over many lines, after warnings and stack traces.
    """
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


def read_last(path: str) -> Any:
    """Give the last JSON object or array in the file at *path*; None if there is no such file."""
    try:
        with open(path, "rb") as file:
            return parse_last(file.read())
    except OSError:
        return None


def find(record: Any, kind: type[Kind], *path: str) -> Kind | None:
    """Give what stands in *record* at *path* if it is a *kind*, else None.

    An int is a float as well; a bool is neither.
    """
    for name in path:
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    if kind is float and isinstance(record, int) and not isinstance(record, bool):
        return kind(record)
    if isinstance(record, bool) and kind is not bool:
        return None
    return record if isinstance(record, kind) else None


def build_usage(**found: float | None) -> dict[str, Any]:
    """Give the numbers that were found; what was not told is left out."""
    return {name: value for name, value in found.items() if value is not None}


def _parse(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _parse_beginning(text: str, start: int) -> tuple[Any, int]:
    """Parse the document that begins at *start*; tell where to look on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1
    # Part of a line of text is no document: it has to end where a line ends.
    return (value, end) if _ENDING.match(text, end) else (None, end)
