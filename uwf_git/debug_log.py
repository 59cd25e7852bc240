"""The debug log: one JSON object a line, to standard error or a file.

While it is off, a call costs one attribute lookup. A failure to log never reaches the caller.
Each call site has a tag of its own, eight symbols of Crockford's Base32: `grep -rn TAG uwf_git`
finds it. The facts are names and numbers that cost nothing to compute, no documents.
Source: seed 003 (the debug log of a thread).
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Mask = Callable[[str], str]

_FIELDS = ("tag", "content", "timestamp", "pid")

_LONGEST_TEXT = 1000
_MOST_MEMBERS = 50
_DEEPEST = 4

_NS_PER_MS = 1_000_000

# O_NONBLOCK: a pipe without a reader must not block us; it does not affect files. Windows has none
# of these three.
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT
for _name in ("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):
    _APPENDING |= getattr(os, _name, 0)


class _Log:
    """The destination of lines; one for the process."""

    __slots__ = ("mask", "write")

    def __init__(self) -> None:
        self.write: Callable[[str], None] | None = None
        self.mask: Mask = str


_LOG = _Log()


def debug(tag: str, content: str, /, **facts: Any) -> None:
    """Log *content* and *facts* if the log is on; raise nothing.

    *tag* and *content* are constants of the call site; what varies is in *facts*.
    """
    write = _LOG.write
    if write is None:
        return
    try:
        write(_build_line(tag, content, facts))
    except Exception:  # noqa: BLE001 (logging must not hide the failure under study)
        return


def switch_on(path: str | None, *, mask: Mask) -> None:
    """Log from now on: append to the file *path*, or write to standard error if it is None.

    *mask* removes secrets from each text.
    """
    _LOG.mask = mask
    _LOG.write = _to_stderr if path is None else lambda line: _append(path, line)


def switch_off() -> None:
    _LOG.write = None


def is_on() -> bool:
    return _LOG.write is not None


def _build_line(tag: str, content: str, facts: dict[str, Any]) -> str:
    line: dict[str, Any] = {
        "tag": tag,
        "content": content,
        "timestamp": time.time_ns() // _NS_PER_MS,
        "pid": os.getpid(),
    }
    for name, value in facts.items():
        if name not in _FIELDS:
            line[name] = _plain(value)
    return json.dumps(line) + "\n"


def _plain(value: Any, depth: int = 0) -> Any:
    """Return *value* as JSON, shortened, with secrets masked."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # A subclass may have a `__str__` of its own.
        return int(value)
    try:
        if isinstance(value, dict | list | tuple) and depth < _DEEPEST:
            return _plain_members(value, depth + 1)
        text = value if isinstance(value, str) else str(value)
        # Mask before cutting: half a key would not be recognized.
        return _LOG.mask(text)[:_LONGEST_TEXT]
    except Exception:  # noqa: BLE001 (any `__str__` may fail; log the other facts)
        return f"({type(value).__name__} that cannot be shown)"


def _plain_members(value: "dict[Any, Any] | list[Any] | tuple[Any, ...]", depth: int) -> Any:
    if isinstance(value, dict):
        members = list(value.items())[:_MOST_MEMBERS]
        return {str(_plain(name)): _plain(each, depth) for name, each in members}
    return [_plain(each, depth) for each in value[:_MOST_MEMBERS]]


def _to_stderr(line: str) -> None:
    stream = sys.stderr
    if stream is None:
        # sys.stderr is None if it was closed when Python started.
        return
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        # sys.stderr was replaced by an object without a descriptor.
        stream.write(line)
        stream.flush()
        return
    # Bypass the stream: unwritten bytes would stay in its buffer and fail the next writer.
    _write_all(descriptor, line)


def _append(path: str, line: str) -> None:
    # Opened for each line, so that no descriptor crosses a fork and the file may be removed.
    descriptor = os.open(path, _APPENDING, 0o600)
    try:
        _write_all(descriptor, line)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, line: str) -> None:
    left = line.encode("ascii")
    while left:
        left = left[os.write(descriptor, left) :]
