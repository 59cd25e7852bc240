"""The session log: an entry for each transition of a plan thread, in a file for each day.

The thread is the truth: an entry that is missing, for whatever reason, is added; one that is there,
known by its commit, is left as it is. So nothing is there twice after a crash, and what people
write between the entries stays.
"""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo

from uwf_git.errors import name_some
from uwf_git.model.text import one_line
from uwf_git.plan.inside import resolve_inside
from uwf_git.plan.phases import (
    IDLE,
    PLANS,
    VERIFIERS,
    WORKERS,
    Happened,
    PlanState,
    advance,
    describe_rejection,
    is_verified,
    list_plans,
    list_texts,
)
from uwf_git.plan.whole_file import read_whole, replace_whole

MEMORY_DIR = "docs/memory"

_SHORT = 10
"""How many characters of a commit an entry has."""

_MOST_SHOWN = 1000
_COMMIT = re.compile(rb"^commit ([0-9a-f]{10})\s*$", re.MULTILINE)
_FIELDS = (
    ("files_created", "created"),
    ("files_modified", "modified"),
    ("issues", "issues"),
    ("next_steps", "next steps"),
)


def render_entries(
    story: Iterable[Happened], *, state: PlanState = IDLE, zone: tzinfo | None = None
) -> dict[str, dict[str, str]]:
    """Return the entries of a *story*, oldest first, by file name and then by commit.

    The story goes on from *state*. The days and times are those of *zone*, by default of this
    machine.
    """
    days: dict[str, dict[str, str]] = {}
    for happened in story:
        after = advance(state, happened)
        moment = datetime.fromtimestamp(happened.time_ms / 1000, tz=zone)
        lines = (
            f"## {moment:%H:%M:%S} {_head(state, after, happened)}",
            _text(happened, after),
            f"commit {happened.commit[:_SHORT]}",
        )
        day = days.setdefault(f"session-{moment:%Y-%m-%d}.md", {})
        day[happened.commit[:_SHORT]] = "".join(f"{line}\n" for line in lines if line)
        state = after
    return days


def add_entries(content: bytes, name: str, entries: Mapping[str, str]) -> bytes:
    """Return the *content* of the log *name* with the entries that it has not, at its end."""
    known = {found[1].decode() for found in _COMMIT.finditer(content)}
    missing = [text for commit, text in entries.items() if commit not in known]
    if not missing:
        return content
    day = name.removeprefix("session-").removesuffix(".md")
    before = content or f"# Session {day}\n".encode()
    joint = b"\n" if before.endswith(b"\n") else b"\n\n"
    return before + joint + "\n".join(missing).encode("utf-8", "replace")


def write_session_log(
    workdir: str,
    story: Iterable[Happened],
    *,
    state: PlanState = IDLE,
    memory_dir: str = MEMORY_DIR,
) -> list[str]:
    """Add the entries of a *story* that the logs in *memory_dir* have not.

    The story goes on from *state*. A log behind a link is left alone.

    Returns:
        The paths of the files that changed.

    Raises:
        OSError: the system refused; each file is as before, or whole.
    """
    written = []
    for name, entries in render_entries(story, state=state).items():
        inside = resolve_inside(workdir, os.path.join(memory_dir, name))
        path = os.path.join(workdir, inside or "")
        if inside is None or os.path.islink(path):
            continue
        before = read_whole(path) or b""
        after = add_entries(before, name, entries)
        if after != before:
            replace_whole(path, after)
            written.append(path)
    return written


def _head(state: PlanState, after: PlanState, happened: Happened) -> str:
    """Return the phase, the plan and the try in which it happened."""
    if happened.role in WORKERS | VERIFIERS and happened.event in {"step", "answer", "attempt"}:
        plan = "" if state.current is None else f" {_line(state.current.file.rpartition('/')[2])}"
        # A verifier is asked again about a try that has ended.
        number = state.tries + 1
        return f"{state.stage}{plan}, try {number} of {max(number, after.max_retries)}"
    return f"{after.phase}, paused" if after.is_paused else after.phase


def _text(happened: Happened, after: PlanState) -> str:
    """Return what happened, on one line; what others wrote cannot begin a line."""
    who = happened.role + (f" ({happened.agent})" if happened.agent else "")
    match happened.event:
        case "start":
            return f"task: {_line(happened.task)}"
        case "step" | "answer":
            return f"{who}: {_tell_step(happened)}{_tell_stops(happened)}{_tell_end(after)}"
        case "attempt":
            told = f"{who}: failed: {_line(happened.reason)}{_tell_stops(happened)}"
            return told + _tell_end(after)
        case "end":
            return f"{after.done} of {_count_plans(len(after.plans))} completed"
    told = f"{happened.event} {happened.role}".strip()
    return told + (f": {_line(happened.reason)}" if happened.reason else "")


def _tell_stops(happened: Happened) -> str:
    return f"; stop notices: {happened.notices}" if happened.notices else ""


def _count_plans(number: int) -> str:
    return "1 plan" if number == 1 else f"{number} plans"


def _tell_end(after: PlanState) -> str:
    return "; waiting for a person" if after.phase == "waiting_human" else ""


def _tell_step(happened: Happened) -> str:
    if happened.role == PLANS:
        names = [plan.file.rpartition("/")[2] for plan in list_plans(happened.meta)]
        return _line(f"{_count_plans(len(names))}: {name_some(names)}")
    if happened.role in VERIFIERS:
        if is_verified(happened.meta):
            return "verified"
        return f"rejected: {_line(describe_rejection(happened.meta))}"
    summary = happened.meta.get("summary") if isinstance(happened.meta, dict) else None
    parts = [summary] if isinstance(summary, str) and summary.strip() else []
    for field, word in _FIELDS:
        texts = list_texts(happened.meta, field)
        parts += [f"{word}: {', '.join(texts)}"] if texts else []
    return _line("; ".join(parts) or "done")


def _line(text: str) -> str:
    told = one_line(text)
    return told if len(told) <= _MOST_SHOWN else told[:_MOST_SHOWN] + "…"
