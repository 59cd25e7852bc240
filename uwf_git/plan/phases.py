"""Where a plan thread stands, in the words of seed 002, from what has happened to it; as files.

The roles are those of the workflow ``plan-execute``. A try is a turn of the planner or of the
executor: it ends by a verdict, or by an attempt that counts against the retries. A verifier that
breaks is asked again, without another try. The state file and the session log are views: both can
be deleted.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import reduce
from typing import Any, Literal, NamedTuple, TypeAlias

from uwf_git.errors import name_some
from uwf_git.model.builtin import ATTEMPT, SIGNAL, TRACE, find_reference
from uwf_git.model.event_folds import counts_as_failure
from uwf_git.model.event_rules import STEPS, signal_of
from uwf_git.model.names import Oid
from uwf_git.model.text import one_line
from uwf_git.model.thread import Event, Status, ThreadState
from uwf_git.plan.project_files import (
    PlanFile,
    keep_out_of_git,
    read_whole,
    replace_if_changed,
    resolve_inside,
)
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot, get_typed, walk_history

PLANNER, PLAN_VERIFIER, PLANS = "planner", "plan-verifier", "plans"
EXECUTOR, VERIFIER = "executor", "verifier"
WORKERS = frozenset({PLANNER, EXECUTOR})
VERIFIERS = frozenset({PLAN_VERIFIER, VERIFIER})

MAX_RETRIES = 3
"""How many tries there are in all unless the state of the thread has another ``maxRetries``."""

STATE_FILE = ".state/workflow.state.json"
MEMORY_DIR = "docs/memory"

_SHORT = 10
"""How many characters of a commit an entry has."""

# Of the last day but one that every zone has: a limit ends when an agent says.
_LAST_S = 253_402_214_399

_MOST_SHOWN = 1000
_COMMIT = rb"(?m)^commit ([0-9a-f]{10})\s*$"
_FIELDS = (
    ("files_created", "created"),
    ("files_modified", "modified"),
    ("issues", "issues"),
    ("next_steps", "next steps"),
)

Phase: TypeAlias = Literal["idle", "planning", "executing", "completed", "failed", "waiting_human"]
Stage: TypeAlias = Literal["planning", "executing"]


_PHASES: Mapping[Status | None, Phase] = {
    None: "idle",
    "completed": "completed",
    "killed": "failed",
    "failed": "waiting_human",
}


class Happened(NamedTuple):
    commit: str
    time_ms: int
    event: Event
    status: Status

    role: str = ""
    agent: str = ""
    meta: Any = None

    reason: str = ""
    """Of an attempt: why it failed; of what steers the thread: why; of a wait: the question."""

    counts: bool = False
    """Of an attempt: it counts against the retries."""

    notices: int = 0
    """Of a step or an attempt: how often its tool told that it stopped."""

    until_ms: int | None = None
    """When the thread waits for the end of a limit: that end."""

    paused_from: Status | None = None
    max_retries: int | None = None
    """The ``maxRetries`` of the thread's state afterwards."""

    task: str = ""

    has_plans: bool = False
    """Of a start: nobody plans, the files that lie there are carried out."""


class PlanState(NamedTuple):
    """Where the thread stands; the default stands for a directory without a thread."""

    status: Status | None = None
    """The thread's, under a pause too."""

    stage: Stage = "planning"
    plans: tuple[PlanFile, ...] = ()
    done: int = 0
    """How many of the plans are carried out and verified."""

    failures: tuple[str, ...] = ()
    """Why each try of this phase, or of this plan, has failed, oldest first."""

    max_retries: int = MAX_RETRIES
    task: str = ""
    error: str = ""
    """Why the last try failed."""

    is_paused: bool = False
    until_ms: int | None = None
    updated_ms: int = 0
    before_step: "PlanState | None" = None
    """Where it stood before the newest step; a poke goes back there."""

    @property
    def tries(self) -> int:
        return len(self.failures)

    @property
    def phase(self) -> Phase:
        if self.status == "waiting" and self.until_ms is None:
            return "waiting_human"
        return _PHASES.get(self.status, self.stage)

    @property
    def is_stuck(self) -> bool:
        """Whether a phase has failed, and a person has to decide; a pause comes first."""
        return self.status == "failed" and not self.is_paused

    @property
    def current(self) -> PlanFile | None:
        """The plan that is carried out, or that failed; None outside of any."""
        is_at_one = self.stage == "executing" and self.done < len(self.plans)
        return self.plans[self.done] if is_at_one and self.phase != "completed" else None


IDLE = PlanState()


def fold_story(story: Iterable[Happened]) -> PlanState:
    """Return where the thread stands after *story*, oldest first."""
    return reduce(advance, story, IDLE)


def advance(state: PlanState, happened: Happened) -> PlanState:
    """Return where the thread stands after one transition."""
    changed = _after_event(state, happened)
    return changed._replace(
        status=happened.paused_from or happened.status,
        is_paused=happened.paused_from is not None,
        until_ms=happened.until_ms,
        max_retries=happened.max_retries or state.max_retries,
        updated_ms=happened.time_ms,
    )


def _after_event(state: PlanState, happened: Happened) -> PlanState:
    match happened.event:
        case "start":
            stage: Stage = "executing" if happened.has_plans else "planning"
            return PlanState(stage=stage, task=happened.task)
        case "step" | "answer":
            return _after_step(state, happened)._replace(before_step=state)
        case "attempt":
            failed = (happened.reason,) if happened.counts and happened.role in WORKERS else ()
            return state._replace(failures=state.failures + failed, error=happened.reason)
        case "retry" | "fork":
            return state._replace(failures=())
        case "poke":
            return state.before_step or state
        case "kill":
            return state._replace(error=happened.reason or state.error)
    return state


def _after_step(state: PlanState, happened: Happened) -> PlanState:
    if happened.role == PLANS:
        return state._replace(
            stage="executing", plans=list_plans(happened.meta), done=0, failures=()
        )
    if happened.role not in VERIFIERS:
        return state
    if not is_verified(happened.meta):
        why = describe_rejection(happened.meta)
        return state._replace(failures=(*state.failures, f"rejected: {why}"), error=why)
    if happened.role == PLAN_VERIFIER:
        return state._replace(stage="executing", failures=(), error="")
    return state._replace(done=state.done + 1, failures=(), error="")


def is_verified(meta: Any) -> bool:
    return isinstance(meta, dict) and meta.get("verified") is True


def describe_rejection(meta: Any) -> str:
    suggestion = meta.get("suggestion") if isinstance(meta, dict) else None
    told = [*list_texts(meta, "issues"), *([suggestion] if isinstance(suggestion, str) else [])]
    return "; ".join(text for text in told if text.strip()) or "rejected"


def list_failures(state: PlanState) -> list[str]:
    """List why a phase waits for a person, a line for each of its tries."""
    told = [f"try {number}: {why}" for number, why in enumerate(state.failures, 1)]
    # A verifier that breaks is no try of the work.
    is_told = bool(state.failures) and state.failures[-1].endswith(state.error)
    return told if is_told or not state.error else [*told, f"then: {state.error}"]


def list_texts(meta: Any, key: str) -> list[str]:
    value = meta.get(key) if isinstance(meta, dict) else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def list_plans(meta: Any) -> tuple[PlanFile, ...]:
    """List the plans in the meta of the role ``plans``; what is no plan is left out."""
    rows = meta.get("plans") if isinstance(meta, dict) else None
    return tuple(
        PlanFile(row["file"], row["number"], row["name"])
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
        and isinstance(row.get("file"), str)
        and isinstance(row.get("number"), int)
        and isinstance(row.get("name"), str)
    )


def list_plan_rows(state: PlanState, on_disk: Sequence[PlanFile]) -> list[dict[str, Any]]:
    """List all plans, by number, with their ``status``.

    A plan that is only on the disk has ``tracked`` false, a plan that is gone has ``missing`` true.
    """
    present = {plan.file for plan in on_disk}
    rows = []
    for place, plan in enumerate(state.plans):
        row: dict[str, Any] = {**plan._asdict(), "status": _word_of(state, place)}
        rows.append(row if plan.file in present else {**row, "missing": True})
    known = {plan.file for plan in state.plans}
    rows += [
        {**plan._asdict(), "status": "pending", "tracked": False}
        for plan in on_disk
        if plan.file not in known
    ]
    return sorted(rows, key=lambda row: (row["number"], row["file"]))


def _word_of(state: PlanState, place: int) -> str:
    if place < state.done:
        return "completed"
    if place > state.done or state.phase == "planning":
        return "pending"
    return "failed" if state.status in {"failed", "killed"} else "executing"


# The state file, for the stop hook and for people.


def build_state_document(state: PlanState, where: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state file; *where* may have ``thread``, ``repo``, ``address`` and ``port``."""
    current = state.current
    document = {
        "phase": state.phase,
        "currentPlan": current and current.file.rpartition("/")[2].removesuffix(".md"),
        "retryCount": state.tries,
        "maxRetries": state.max_retries,
        "task": state.task or None,
        "error": state.error or None,
        **{key: where.get(key) for key in ("thread", "repo", "address", "port")},
        "updated": render_moment(state.updated_ms) if state.updated_ms else None,
    }
    document |= {"paused": True} if state.is_paused else {}
    return document | ({} if state.until_ms is None else {"until": render_moment(state.until_ms)})


def render_moment(time_ms: int) -> str:
    """Write milliseconds since 1970 as RFC 3339 in UTC; a time beyond the calendar as its end."""
    return datetime.fromtimestamp(min(time_ms // 1000, _LAST_S), tz=UTC).isoformat()


def write_state(
    workdir: str, state: PlanState, where: Mapping[str, Any], *, state_file: str = STATE_FILE
) -> bool:
    """Write the state file, unless a link leads out of *workdir*; return if it changed."""
    inside = resolve_inside(workdir, state_file)
    if inside is None:
        return False
    path = os.path.join(workdir, inside)
    text = json.dumps(build_state_document(state, where), indent=2, ensure_ascii=False)
    if os.path.dirname(inside):
        keep_out_of_git(os.path.dirname(path))
    return replace_if_changed(path, text.encode("utf-8", "replace") + b"\n")


def read_state(workdir: str, *, state_file: str = STATE_FILE) -> dict[str, Any]:
    """Return what the state file says, {} without a readable file; a hint, and never the truth."""
    try:
        content = read_whole(os.path.join(workdir, state_file)) or b""
        document = json.loads(content.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


# The session log: an entry for each transition, in a file for each day. An entry that is missing,
# for whatever reason, is added; an entry that is there, known by its commit, is left as it is. So
# nothing is there twice after a crash, and what people write between the entries stays.


def render_entries(
    story: Iterable[Happened], *, zone: tzinfo | None = None
) -> dict[str, dict[str, str]]:
    """Return the entries of a *story*, oldest first, by file name and then by commit.

    Days and times are in *zone*, by default this machine's.
    """
    state = IDLE
    days: dict[str, dict[str, str]] = {}
    for happened in story:
        after = advance(state, happened)
        moment = datetime.fromtimestamp(min(happened.time_ms // 1000, _LAST_S), tz=zone)
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
    known = {found[1].decode() for found in re.finditer(_COMMIT, content)}
    missing = [text for commit, text in entries.items() if commit not in known]
    if not missing:
        return content
    day = name.removeprefix("session-").removesuffix(".md")
    before = content or f"# Session {day}\n".encode()
    joint = b"\n" if before.endswith(b"\n") else b"\n\n"
    return before + joint + "\n".join(missing).encode("utf-8", "replace")


def write_session_log(
    workdir: str, story: Iterable[Happened], *, memory_dir: str = MEMORY_DIR
) -> None:
    """Add missing entries of a *story* to the logs in *memory_dir*, but to none behind a link."""
    for name, entries in render_entries(story).items():
        inside = resolve_inside(workdir, os.path.join(memory_dir, name))
        path = os.path.join(workdir, inside or "")
        if inside is not None and not os.path.islink(path):
            replace_if_changed(path, add_entries(read_whole(path) or b"", name, entries))


def _head(state: PlanState, after: PlanState, happened: Happened) -> str:
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


# The story of a thread: what has happened to it, read from its commits.

STOP_NOTICE = "stop-notice"
"""The type of the events in a trace that hold the stop notices which came meanwhile."""


def read_story(store: Store, tip: Oid) -> list[Happened]:
    """Return what has happened to a thread up to *tip*, oldest first."""
    return [_tell(each) for each in walk_history(store, tip, through_forks=True)][::-1]


def _tell(snapshot: Snapshot) -> Happened:
    record, present = snapshot.record, snapshot.get_present()
    most = present.state.get("maxRetries")
    is_start = record.event == "start"
    return Happened(
        commit=str(snapshot.commit.oid),
        time_ms=snapshot.commit.time_s * 1000,
        event=record.event,
        status=record.status,
        role=record.role or "",
        agent=record.agent or "",
        until_ms=None if present.waiting is None else present.waiting.until,
        paused_from=present.paused_from,
        max_retries=most if isinstance(most, int) and not isinstance(most, bool) else None,
        task=str(snapshot.get_start().payload["prompt"]) if is_start else "",
        has_plans=is_start and present.state.get("hasPlans") is True,
        **_tell_end_of_story(snapshot, present),
    )


def _tell_end_of_story(snapshot: Snapshot, present: ThreadState) -> dict[str, Any]:
    record = snapshot.record
    if record.event in STEPS:
        step = snapshot.get_head_node().payload
        return {"meta": step["meta"], "notices": _count_notices(snapshot, step)}
    if record.event == "attempt" and present.last_attempt is not None:
        attempt = get_typed(snapshot, present.last_attempt, ATTEMPT).payload
        return {
            "reason": attempt["error"]["message"],
            "counts": counts_as_failure(attempt),
            "notices": _count_notices(snapshot, attempt),
        }
    signal = signal_of(record)
    if signal is not None:
        return {"reason": get_typed(snapshot, signal, SIGNAL).payload.get("reason", "")}
    return {"reason": snapshot.body}


def _count_notices(snapshot: Snapshot, payload: Mapping[str, Any]) -> int:
    trace = find_reference(payload.get("trace"))
    if trace is None:
        return 0
    events = get_typed(snapshot, trace, TRACE).payload["events"]
    return sum(each.get("type") == STOP_NOTICE for each in events)
