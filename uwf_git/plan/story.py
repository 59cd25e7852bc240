"""The story of a thread: what has happened to it, read from its commits."""

from collections.abc import Mapping
from typing import Any

from uwf_git.model.builtin import ATTEMPT, SIGNAL, TRACE
from uwf_git.model.event_folds import counts_as_failure
from uwf_git.model.event_rules import STEPS, signal_of
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.plan.phases import Happened
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, get_typed

STOP_NOTICE = "stop-notice"
"""The type of the events in a trace that hold the stop notices which came meanwhile."""


def read_story(store: Store, tip: Oid, *, after: str | None = None) -> list[Happened]:
    """Return what has happened to a thread after the commit *after* up to *tip*, oldest first."""
    story = []
    for snapshot in walk_history(store, tip, through_forks=True):
        if snapshot.commit.oid == after:
            break
        story.append(_tell(snapshot))
    return story[::-1]


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
        **_tell_end(snapshot, present),
    )


def _tell_end(snapshot: Snapshot, present: ThreadState) -> dict[str, Any]:
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
    return sum(isinstance(each, dict) and each.get("type") == STOP_NOTICE for each in events)
