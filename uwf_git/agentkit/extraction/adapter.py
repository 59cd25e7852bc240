"""The interface of adapters: a question, an answer, a failure.

An adapter drives one agent program or model. It answers only from the program's own final record,
never because of an exit status alone.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from uwf_git.agents.files import read_left_file
from uwf_git.agents.request import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.errors import AgentFailed

FailureKind = Literal[
    "missing", "usage", "auth", "rate-limit", "model-error", "refused-permission", "no-session",
    "no-result", "bad-output", "too-long", "timed-out", "silent", "too-much-output",
    "interrupted", "crashed",
]  # fmt: skip
"""``no-session``: lost; ``no-result``: no final record; ``bad-output``: an unreadable record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterQuestion:
    """One question to an adapter."""

    prompt: str

    schema: dict[str, Any] | bool | None = None
    """The JSON Schema of the meta, for programs that take one; None to ask in words."""

    session: str | None = None
    """The conversation to resume; None starts a new one."""

    spent: Mapping[str, Any] = field(default_factory=dict)
    """What that conversation has cost so far, for programs that report its whole usage."""

    workdir: str = "."
    step_dir: str | None = None
    """A folder for the files of this step; None: the adapter makes a temporary one."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of this program: ``model``, ``permission``, ``args``, …."""

    environ: Mapping[str, str] = field(default_factory=dict)

    timeout_s: float | None = None
    silence_s: float | None = None
    """How long it may print nothing before it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswer:
    """The answer of an adapter's program."""

    text: str

    structured: Any = None
    """The meta, if the program reports it as an object; else None."""

    session: str | None = None

    usage: Mapping[str, Any] = field(default_factory=dict)
    """Of this question alone, as far as the program reports it: ``inputTokens``, ``outputTokens``,
    ``cachedInputTokens``, ``reasoningTokens``, ``costUsd``, ``turns``. An unknown number is left
    out, not 0."""

    trace: tuple[Mapping[str, Any], ...] = ()
    """What it did, as objects with a ``type``; tests/agentkit/traces.py lists their keys."""


class AskFailed(AgentFailed):
    """The program or model gave no complete answer."""

    code = "ask-failed"

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        partial: AdapterAnswer | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, code=code, hint=hint, kind=kind, **facts)
        self.kind = kind
        self.partial = partial


def classify_status(status: int) -> FailureKind:
    """Return the kind of failure for an HTTP status of a model's endpoint."""
    return _STATUSES.get(status, "model-error")


_STATUSES: dict[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    413: "too-long",
    429: "rate-limit",
}


class Adapter(Protocol):
    @property
    def name(self) -> str:
        """The name of the program in settings and messages."""

    @property
    def takes_schema(self) -> bool:
        """Whether it takes a JSON Schema and returns the object."""

    @property
    def resumes(self) -> bool:
        """Whether it can resume a conversation."""

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Ask, and wait for the answer."""


# Find JSON records in a program's output, and read values from them whatever their shape.
#
# Any bytes give some records or none, never an error: programs print warnings before the JSON,
# half a line at the end, and a number where a text should be.

JsonT = TypeVar("JsonT", str, int, float, bool, list[Any], dict[str, Any])

_DECODER = json.JSONDecoder()

_BEGINNING = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_ENDING = re.compile(r"[ \t\r]*(?:\n|\Z)")

# The numbers of a usage that are not whole.
_FRACTIONS = {"costUsd", "premiumRequests"}

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

    An int counts as a float; a bool counts as neither.
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


def find_last(records: Sequence[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    """Return the last record whose ``type`` is *kind*, or None."""
    return next((each for each in reversed(records) if each.get("type") == kind), None)


def find_first(records: Sequence[dict[str, Any]], *path: str) -> str | None:
    """Return the first text at *path* of a record, or None."""
    return next((text for each in records if (text := find(each, str, *path))), None)


def read_usage(record: Any, **paths: str) -> dict[str, Any]:
    """Return the usage in *record*: each number under its name, from its path (``usage.input``)."""
    kinds = {name: float if name in _FRACTIONS else int for name in paths}
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
        return json.loads(text) if text[:1] in ("{", "[") else None
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
