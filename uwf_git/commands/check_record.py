"""Checking a record: can what a commit says have happened after what the one before says.

Owns: which event may come where, and what it does to status, depth, head and workflow.
Knows nothing of: nodes, trees; only the two records are held together.
Always true: an event that is known and that nothing here writes yet may come wherever a thread
goes on, and do what it likes to the status; the depth is a step's to change.
Format: FORMAT.md, "The trailers of a thread commit".
"""

from collections.abc import Iterator, Mapping

from uwf_git.model.thread import ENDED, STEPS
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord

_LEADS_TO: Mapping[str, frozenset[str]] = {
    "start": frozenset({"ready"}),
    "step": frozenset({"ready", "paused"}),
    "answer": frozenset({"ready"}),
    "attempt": frozenset({"ready", "waiting", "failed", "paused"}),
    "wait": frozenset({"waiting"}),
    "pause": frozenset({"paused"}),
    "resume": frozenset({"ready", "waiting", "failed"}),
    "retry": frozenset({"ready"}),
    "patch": frozenset({"ready", "waiting", "failed", "paused"}),
    "amend": frozenset({"ready", "waiting", "failed", "paused"}),
    "poke": frozenset({"ready"}),
    "fork": frozenset({"ready"}),
    "end": frozenset({"completed"}),
    "kill": frozenset({"killed"}),
}
"""The statuses that an event may lead to, of those that are written."""

_FROM: Mapping[str, frozenset[str]] = {
    "step": frozenset({"ready", "waiting", "paused"}),
    "attempt": frozenset({"ready", "waiting", "paused"}),
    "answer": frozenset({"waiting"}),
    "wait": frozenset({"ready", "waiting"}),
    "pause": frozenset({"ready", "waiting", "failed"}),
    "resume": frozenset({"paused", "waiting"}),
    "retry": frozenset({"failed"}),
    "poke": frozenset({"ready", "waiting", "failed"}),
}
"""The statuses in which an event may happen, where not in each."""

_PAUSE_ENDS = frozenset({"resume", "end", "kill", "fork"})

SIGNALLED = frozenset({"pause", "resume", "retry", "patch", "amend", "poke"})
"""Events by which somebody steers a thread; a Signal node says what was asked."""

_ACTED = {"step", "attempt", "answer"}
_HAS_ROLE = {*_ACTED, "wait"}
_MAY_CHANGE_HEAD = {"join", "split", "poke", *STEPS}
_MAY_CHANGE_WORKFLOW = {"amend"}


def check_alone(record: TransitionRecord, thread: ThreadId | None) -> Iterator[str]:
    """Tell what a record says that none can; *thread* is the one it must be of, if known."""
    event = record.event
    if thread is not None and record.thread != thread:
        yield f"Uwf-Thread is {record.thread}, and this is the history of {thread}"
    statuses = _LEADS_TO.get(event, {record.status})
    if record.status not in statuses:
        yield f"Uwf-Status is {record.status}, and {event} leads to {' or '.join(sorted(statuses))}"
    if (event == "fork") != (record.forked_from is not None) and event in {"fork", "start", "step"}:
        yield f"{event} {'has no' if event == 'fork' else 'has a'} Uwf-Forked-From"
    if record.forked_from == record.thread:
        yield "Uwf-Forked-From is the thread itself"
    if event in _LEADS_TO:
        for name, value, events in (
            ("Uwf-Role", record.role, _HAS_ROLE),
            ("Uwf-Agent", record.agent, _ACTED),
            ("Uwf-Signal", record.signal, SIGNALLED),
        ):
            if (value is not None) != (event in events):
                yield f"{event} {'has no' if event in events else 'has a'} {name}"
        if (record.attempt is not None) != (event == "attempt"):
            yield f"{event} {'has no' if event == 'attempt' else 'has an'} Uwf-Attempt"


def check_first(record: TransitionRecord) -> Iterator[str]:
    """Tell what keeps a record from being that of a commit without a parent."""
    if record.event != "start":
        yield f"Uwf-Event is {record.event}, and a history begins with start"
    if record.depth != 0:
        yield f"Uwf-Depth is {record.depth}, and a thread begins with 0"


def check_next(before: TransitionRecord, record: TransitionRecord) -> Iterator[str]:
    """Tell what keeps *record* from coming after *before*."""
    event = record.event
    if event == "start":
        yield "Uwf-Event is start, and it has a parent"
    elif event != "fork" and before.status in ENDED:
        yield f"Uwf-Event is {event}, after the thread was {before.status}"
    if before.status not in _FROM.get(event, {before.status}):
        yield f"Uwf-Event is {event}, after the thread was {before.status}"
    if before.status == "paused" and record.status != "paused" and event not in _PAUSE_ENDS:
        yield f"Uwf-Status is {record.status} after {event}, and the thread was paused"
    depth = before.depth + (event in STEPS) - (event == "poke")
    if record.depth != depth:
        yield f"Uwf-Depth is {record.depth}, and must be {depth} after {before.depth}"
    if event not in _MAY_CHANGE_HEAD and record.node != before.node:
        yield f"Uwf-Node is {record.node}, and {event} leaves it at {before.node}"
    if event not in _MAY_CHANGE_WORKFLOW:
        if record.workflow != before.workflow:
            yield f"Uwf-Workflow is {record.workflow}, and {event} leaves it at {before.workflow}"
        if record.workflow_name != before.workflow_name:
            yield f"Uwf-Workflow-Name is {record.workflow_name!r}, and was {before.workflow_name!r}"


def check_parents(event: str, count: int) -> str | None:
    """Tell whether a commit of this event may have so many parents."""
    if event == "start":
        return None if count == 0 else f"start has {count} parents, and may have none"
    if event == "join":
        return None if count else "join has no parent"
    return None if count == 1 else f"{event} has {count} parents, and must have one"
