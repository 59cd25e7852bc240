"""How a program ended, and the failure that this means: its kind, and a message of one line.

A message names the program and holds its own words, so the time at which a limit ends is not lost.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from uwf_git.agentkit.extraction.adapter import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    FailureKind,
    classify_status,
    find,
    parse_lines,
    tool_event,
)
from uwf_git.agentkit.extraction.ladder import read_answer
from uwf_git.agents.nested import NestedRun
from uwf_git.agents.reply import on_one_line
from uwf_git.model.text import render_time

_LONGEST_WORDS = 500
_SIGNALLED = 128

# Compiled when needed: that takes 2 ms, and most programs do not fail.
_STATUS = (
    r"(?i)(?:\bstatus(?: code)?|\bHTTP(?: error)?|\bAPI error|\"?\bcode\"?)\W{0,4}([45]\d\d)\b"
)

_LIMIT = (
    r"rate.?limit|(usage|session|weekly|spend|fast) limit|hit your .{0,40}limit|quota"
    r"|too many requests|resource.?exhausted|exhausted your"
)
_LENGTH = (
    r"prompt is too long|context.{0,10}(length|window)|maximum.{0,12}(context|tokens)"
    r"|too (large|many (input )?tokens)|input exceeds"
)
_LOGIN = (
    r"unauthori[sz]ed|authenticat|auth method|not logged in|/login|log ?in again|api.?key"
    r"|credit balance|permission.?denied"
)
_WORDS: tuple[tuple[FailureKind, str], ...] = (
    ("rate-limit", _LIMIT),
    ("too-long", _LENGTH),
    ("auth", _LOGIN),
)

_ERROR_LINE = r"(?i)^\s*(?:fatal )?error\b:?\s*(?P<words>.*\w.*)$"

_HELP = r"(?i)usage:\s"


@dataclass(frozen=True, slots=True)
class EndedProgram:
    run: NestedRun
    question: AdapterQuestion
    folder: str
    """The folder that ``build`` was given for files."""

    def read_records(self) -> list[dict[str, Any]]:
        """Return the JSON objects that it printed, one a line."""
        return parse_lines(self.run.stdout)


class Report(NamedTuple):
    answer: AdapterAnswer
    """Its answer, or the part that there is."""

    has_end: bool = True
    """Whether it printed its final record."""

    error: str | None = None
    """Its words, if it says that it failed; "": it gives no reason."""

    status: int | None = None
    """The HTTP status by which its model's endpoint failed."""

    reset_s: int | None = None
    """When an exceeded limit ends, in seconds since 1970."""

    is_refused: bool = False
    """Whether it was not allowed to use a tool, which explains an empty answer."""

    any_status: bool = False
    """Whether its exit status does not count."""

    @property
    def is_good(self) -> bool:
        """Whether its final record reports success."""
        return self.has_end and self.error is None


def classify_words(words: str, *, status: int | None = None) -> FailureKind:
    """Return the kind of failure that *words* mean; an HTTP status, if there is one, decides."""
    told = status if status is not None else _find_status(words)
    kind = "model-error" if told is None else classify_status(told)
    if kind != "model-error":
        return kind
    found = (kind for kind, pattern in _WORDS if re.search(pattern, words, re.IGNORECASE))
    return next(found, "model-error")


def explain_words(
    name: str,
    words: str,
    *,
    status: int | None = None,
    login: str,
    partial: AdapterAnswer | None = None,
) -> AskFailed:
    """Return the failure of the program *name*, from its own words, *login* as a hint."""
    said = on_one_line(words).strip()[:_LONGEST_WORDS] or "it gave no reason"
    kind = classify_words(words, status=status)
    hint = login if kind == "auth" else None
    return AskFailed(kind, f"{name}: {said}", hint=hint, partial=partial)


def with_reset(failure: AskFailed, reset_s: int | None) -> AskFailed:
    """Add to *failure* when its rate limit ends (``resetAt``, in milliseconds)."""
    if reset_s is not None and failure.kind == "rate-limit":
        failure.facts["resetAt"] = reset_s * 1000
        failure.hint = f"the limit ends at {render_time(reset_s * 1000)}"
    return failure


def explain_no_record(
    name: str, ended: EndedProgram, *, login: str, partial: AdapterAnswer | None = None
) -> AskFailed:
    """Return the failure of a program without a final record; without any output see stderr."""
    status = ended.run.exit_code
    words, is_error = find_last_words(ended.run.stderr)
    if status > _SIGNALLED and not is_error:
        message = f"{name} was killed by signal {status - _SIGNALLED} before it had a result"
        return AskFailed("crashed", message, partial=partial)
    message = f"{name} ended without a result, with exit status {status}"
    if not words:
        return AskFailed("no-result", message, partial=partial)
    kind = classify_words(words)
    if kind == "model-error":
        kind = "usage" if status and not ended.run.stdout.strip() else "no-result"
    hint = login if kind == "auth" else None
    return AskFailed(kind, f"{message}: {words}", hint=hint, partial=partial)


def find_last_words(stderr: bytes) -> tuple[str, bool]:
    """Return the last line of *stderr* that reports an error, and True; else the last line.

    The line before an unexpected help page counts as an error too.
    """
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    helped = next((number for number, line in enumerate(lines) if re.match(_HELP, line)), None)
    if helped:
        lines = lines[:helped]
    found = [match for line in lines if (match := re.match(_ERROR_LINE, line))]
    said = found[-1]["words"] if found else lines[-1] if lines else ""
    return on_one_line(said)[:_LONGEST_WORDS], bool(found or helped)


def _find_status(words: str) -> int | None:
    found = re.search(_STATUS, words)
    return int(found[1]) if found else None


# Read records that hold messages of Anthropic's API in blocks, as claude and qwen print them.


def _blocks(record: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """List the blocks of one kind in a message; [] for an error of the endpoint."""
    blocks = find(record, list, "message", "content") or []
    is_error = record.get("is_api_error_message") is True
    return [] if is_error else [block for block in blocks if find(block, str, "type") == kind]


def find_last_text(records: list[dict[str, Any]]) -> str:
    """Return its own last text, not the text of a sub-agent."""
    for record in reversed(records):
        if record.get("type") == "assistant" and not record.get("parent_tool_use_id"):
            text = "".join(find(block, str, "text") or "" for block in _blocks(record, "text"))
            if text.strip():
                return text
    return ""


def read_result(
    result: Mapping[str, Any], key: str, records: list[dict[str, Any]], question: AdapterQuestion
) -> tuple[str, Any]:
    """Return the text, unless of a failure, and the meta, at *key*, of the final record."""
    value = find(result, dict, key)
    said, meta = "", value
    if value is None and result.get("is_error") is False:
        said = find(result, str, "result") or ""
    elif value is not None and question.schema is not None:
        # Even if it does not fit, it was meant as the fields.
        said, meta = read_answer(value, question.schema) or ("", value)
    return said if said.strip() else find_last_text(records), meta


def read_trace(
    records: list[dict[str, Any]], result: Mapping[str, Any] | None, *, without: str
) -> Iterator[Mapping[str, Any]]:
    """Yield its messages, its tools (but the one *without*), its retries and its refusals."""
    done = {
        find(block, str, "tool_use_id"): block
        for record in records
        if record.get("type") == "user"
        for block in _blocks(record, "tool_result")
    }
    for record in records:
        if record.get("subtype") == "api_retry":
            yield {"type": "warning", "message": f"tried again: {record.get('error')}"}
        if record.get("type") != "assistant":
            continue
        for block in _blocks(record, "text"):
            yield {"type": "message", "text": block.get("text")}
        for block in _blocks(record, "tool_use"):
            name, given = block.get("name"), block.get("input")
            end = done.get(find(block, str, "id"), {})
            if name != without:
                is_good = bool(end) and end.get("is_error") is not True
                yield tool_event(name, given, end.get("content"), ok=is_good)
    for denial in find(result, list, "permission_denials") or []:
        tool, asked = find(denial, str, "tool_name"), find(denial, dict, "tool_input")
        yield {"type": "permission", "name": tool, "allowed": False, "input": asked}
