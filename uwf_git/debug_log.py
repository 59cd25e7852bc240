"""The debug log: what goes on inside, for whoever looks for a fault.

Owns: the switch, how a line looks, and where lines go.
Knows nothing of: who switches it on, what is a secret (``switch_on`` is given what masks them).
Always true: while it is off, a call costs a look at a name; while it is on, nothing that goes wrong
here reaches the caller, and no more than a line is lost. A line is one JSON object in ASCII.

Each call site has a tag of its own, eight symbols of Crockford's Base32: `grep -rn TAG uwf_git`
leads to it. What a call tells costs its caller nothing to make: names and numbers, no documents.
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

# A pipe that nobody reads must not hold us up; of a file this asks nothing.
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class _Log:
    """Where lines go; one for the whole process."""

    __slots__ = ("mask", "write")

    def __init__(self) -> None:
        self.write: Callable[[str], None] | None = None
        self.mask: Mask = str


_LOG = _Log()


def debug(tag: str, content: str, /, **facts: Any) -> None:
    """Log that *content* happens, with its *facts*, if somebody asked for it; raise nothing.

    *tag* is the call site's own, and *content* its own words: what differs from call to call is
    in the facts.
    """
    write = _LOG.write
    if write is None:
        return
    try:
        write(_line(tag, content, facts))
    except Exception:  # noqa: BLE001 (a failure that hides the one that is looked for helps nobody)
        return


def switch_on(path: str | None, *, mask: Mask) -> None:
    """Log from now on: to the end of the file *path*, or to standard error if it is None.

    *mask* takes out of each text what must not be told.
    """
    _LOG.mask = mask
    _LOG.write = _to_stderr if path is None else lambda line: _append(path, line)


def switch_off() -> None:
    """Log nothing from now on."""
    _LOG.write = None


def is_on() -> bool:
    """Tell whether anything is logged, for callers whose facts are not at hand."""
    return _LOG.write is not None


def _line(tag: str, content: str, facts: dict[str, Any]) -> str:
    told: dict[str, Any] = {
        "tag": tag,
        "content": content,
        "timestamp": time.time_ns() // _NS_PER_MS,
        "pid": os.getpid(),
    }
    for name, value in facts.items():
        if name not in _FIELDS:
            told[name] = _tell(value)
    return json.dumps(told) + "\n"


def _tell(value: Any, depth: int = 0) -> Any:
    """Give what JSON can hold of *value*, not too long, and with what is secret taken out."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # A subclass may write itself as it likes.
        return int(value)
    try:
        if isinstance(value, dict | list | tuple) and depth < _DEEPEST:
            return _tell_members(value, depth + 1)
        text = value if isinstance(value, str) else str(value)
        # Masked before it is cut: half a key would not be known for one.
        return _LOG.mask(text)[:_LONGEST_TEXT]
    except Exception:  # noqa: BLE001 (whatever it is, the rest of the line can be told)
        return f"({type(value).__name__} that cannot be told)"


def _tell_members(value: "dict[Any, Any] | list[Any] | tuple[Any, ...]", depth: int) -> Any:
    if isinstance(value, dict):
        members = list(value.items())[:_MOST_MEMBERS]
        return {str(_tell(name)): _tell(each, depth) for name, each in members}
    return [_tell(each, depth) for each in value[:_MOST_MEMBERS]]


def _to_stderr(line: str) -> None:
    stream = sys.stderr
    if stream is None:
        # Python gives None for a stream that was closed when it started.
        return
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        # Somebody put an object of his own in its place.
        stream.write(line)
        stream.flush()
        return
    # Past the stream: what does not get out would stay in it, and fail whoever writes next.
    _write_all(descriptor, line)


def _append(path: str, line: str) -> None:
    # Opened for each line: nothing is kept open over a fork, and a file may be taken away.
    descriptor = os.open(path, _APPENDING, 0o600)
    try:
        _write_all(descriptor, line)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, line: str) -> None:
    left = line.encode("ascii")
    while left:
        left = left[os.write(descriptor, left) :]
