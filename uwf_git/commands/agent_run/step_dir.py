"""Read the files that an agent leaves in its step directory ($UWF_STEP_DIR).

Content that cannot be read counts as absent. Each file is read once and up to a limit: a daemon
that the agent left behind may write there without end. A pipe in its place is not waited for.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

from uwf_git.agents.files import LeftFile, open_left_file, read_left_file
from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.thread import add_usage, drop_unfit

PROMPT = "prompt.md"
TRACE = "trace.jsonl"
FAILURE = "failure.json"

_MOST_BYTES = 1024 * 1024
_LONGEST_LINE = 64 * 1024

# Up to here, the lines that are left out are counted.
_MOST_COUNTED_BYTES = 16 * _MOST_BYTES

_LATEST_MS = 10**16

# `interrupted` is reserved for agents that we stopped.
_KIND = re.compile(r"(?!interrupted$)[a-z][a-z0-9-]{0,39}")


def read_step_dir(step_dir: str) -> StepFiles:
    failure = _read_failure(os.path.join(step_dir, FAILURE))
    kind, usage, reset_at = (failure.get(name) for name in ("kind", "usage", "resetAt"))
    return StepFiles(
        prompt=_read_prompt(os.path.join(step_dir, PROMPT)),
        trace=_read_trace(os.path.join(step_dir, TRACE)),
        kind=kind if isinstance(kind, str) and _KIND.fullmatch(kind) else None,
        usage=usage if isinstance(usage, dict) and usage else None,
        reset_at=reset_at if type(reset_at) is int and 0 <= reset_at < _LATEST_MS else None,
    )


def add_to_trace(step_dir: str, event: Mapping[str, Any]) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(os.path.join(step_dir, TRACE), flags | os.O_CLOEXEC, 0o666)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            # The agent may not have ended its line.
            os.write(file, b"\n" + json.dumps(event).encode() + b"\n")
    finally:
        os.close(file)


class ReportedUsage:
    """What an agent at work has reported so far: the ``usage`` of the turns in its trace."""

    def __init__(self, step_dir: str) -> None:
        self._path = os.path.join(step_dir, TRACE)
        self._offset = 0
        self._usage: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Return the sum of what was reported; only what is new in the trace is read."""
        with suppress(OSError), closing(open_left_file(self._path)) as file:
            new = file.read(self._offset, min(file.size() - self._offset, _MOST_BYTES))
            end = new.rfind(b"\n") + 1
            # A line without an end is read again, unless it is too long for an event.
            self._offset += end or len(new) // _MOST_BYTES * _MOST_BYTES
            for line in new[:end].splitlines():
                event = _parse_object(line) if b'"usage"' in line else None
                usage = event.get("usage") if event and event.get("type") == "turn" else None
                spent = drop_unfit(usage if isinstance(usage, dict) else None)
                self._usage = add_usage(self._usage, spent)
        return self._usage


def _read_prompt(path: str) -> str:
    beginning, size = _read(path)
    left_out = max(0, size - len(beginning))
    if left_out:
        # Cut where a line or a word ends: half a secret could not be masked.
        end = max(beginning.rfind(each, -_LONGEST_LINE) for each in (b"\n", b" "))
        end = len(beginning) if end < 0 else end
        beginning, left_out = beginning[:end], left_out + len(beginning) - end
    text = beginning.decode(errors="replace")
    return f"{text}\n[… {left_out:,} bytes left out …]\n" if left_out else text


def _read_trace(path: str) -> dict[str, Any] | None:
    """Return the events of a trace, and how many lines are bad or were left out."""
    content, size = _read(path, most_bytes=_MOST_COUNTED_BYTES)
    lines = content[:_MOST_BYTES].split(b"\n")
    rest = content[_MOST_BYTES:]
    # A last line without an end counts, and so does all that was not read.
    left_out = rest.count(b"\n") + (size > len(content) or not rest.endswith(b"\n"))
    if rest:
        # The line that was cut is counted by its end, among those left out.
        lines.pop()
    events, bad = [], 0
    for line in lines:
        if line.strip():
            event = _parse_object(line)
            bad += event is None
            events += [] if event is None else [event]
    counts = {"badLines": bad, "leftOut": left_out if rest else 0}
    told = {name: count for name, count in counts.items() if count}
    return {"events": events, **told} if events or told else None


def _read_failure(path: str) -> dict[str, Any]:
    return _parse_object(_read(path).content) or {}


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = parse_strict_json(line.decode())
    except (BadJson, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def _read(path: str, *, most_bytes: int = _MOST_BYTES) -> LeftFile:
    try:
        return read_left_file(path, most_bytes=most_bytes)
    except OSError:
        return LeftFile(b"", 0)
