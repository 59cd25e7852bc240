"""`uwf thread show`: where a thread stands.

Owns: the document that says it. Always true: it reads, and changes nothing.
Source: seed 000 section 1.4; the names of seed 004's TaskHandle.
"""

from typing import Any

from uwf_git.commands.step_view import (
    get_command,
    view_attempt,
    view_error,
    view_step,
    view_steps,
)
from uwf_git.model.references import reference
from uwf_git.model.thread import ENDED
from uwf_git.model.transition import START
from uwf_git.store.heads import get_head, resolve_thread
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.workdirs import find_workdir


def show_thread(store: Store, text: str, *, full: bool = False) -> dict[str, Any]:
    """Give the present of the thread that *text* means, with its newest step.

    If tries have failed since then, the newest of them is there with what it printed. *full*
    adds every step, oldest first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread is meant.
        StoreDamaged: it cannot be read.
    """
    head = get_head(store, resolve_thread(store, text))
    snapshot = read_snapshot(store, head.commit)
    record = snapshot.record
    present = snapshot.get_present()
    start = snapshot.get_start()
    # git counts in seconds, so that the second in which a thread began is before its beginning.
    updated_at = max(snapshot.commit.time_s * 1000, present.started_at)
    document: dict[str, Any] = {
        "thread": head.thread,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "status": record.status,
        "head": record.node,
        "depth": record.depth,
        "prompt": start.payload["prompt"],
        "currentNode": None if present.role == START else present.role,
        "currentIteration": present.visits.get(present.role, 0),
        "startTime": present.started_at,
        "lastUpdateTime": updated_at,
        "endTime": updated_at if record.status in ENDED else None,
        "error": view_error(snapshot, present.last_attempt),
        "attempts": present.attempts,
        "visits": dict(present.visits),
        "state": dict(present.state),
        "usage": dict(present.usage),
        "agents": _agents(snapshot),
        "workdir": find_workdir(store, head.thread),
        "commit": head.commit,
        "said": snapshot.subject,
    }
    if snapshot.body:
        document["reason"] = snapshot.body
    if full:
        document["steps"] = view_steps(snapshot)
    else:
        newest = snapshot.get_head_node()
        document["step"] = view_step(snapshot, newest) if record.depth else None
    document["lastAttempt"] = view_attempt(snapshot, present.last_attempt)
    return document


def _agents(snapshot: Snapshot) -> dict[str, str]:
    binding = snapshot.get_present().binding
    return {role: get_command(snapshot, reference(agent)) for role, agent in binding.items()}
