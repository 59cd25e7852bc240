"""Read an active thread, and the errors if it cannot be stepped or steered."""

from uwf_git.commands.turn.branches import resolve_or_begin
from uwf_git.commands.turn.next_move import NextMove, advise, find_steered
from uwf_git.errors import Refused
from uwf_git.model.event_folds import first_line
from uwf_git.model.text import render_time
from uwf_git.model.thread import Status, ThreadState
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class ThreadNotActive(Refused):
    code = "thread-not-active"

    def __init__(self, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} is not active: it was archived as {record.status} "
            f"at {record.node}",
            hint=f"start a new one with `uwf thread start {record.workflow_name} -p …`, or go on "
            f"from a step of it with `uwf thread fork {record.thread} --at STEP`",
            thread=record.thread,
            status=record.status,
            head=record.node,
        )


class ThreadNotReady(Refused):
    """The thread's status does not allow a step."""

    code = "thread-not-ready"

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} {_account(store, snapshot)}",
            hint=advise(store, snapshot, NextMove()).text,
            thread=record.thread,
            status=record.status,
        )


class WrongStatus(Refused):
    """The command does not fit the thread's status."""

    code = "wrong-status"

    def __init__(self, snapshot: Snapshot, problem: str, hint: str) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} {problem}",
            hint=hint.format(thread=record.thread),
            thread=record.thread,
            status=record.status,
        )


def _account(store: Store, snapshot: Snapshot) -> str:
    status: Status = snapshot.record.status
    present = snapshot.get_present()
    waiting = present.waiting
    steered = find_steered(store, snapshot)
    if steered is not None:
        reason = f": {first_line(steered.reason)}" if steered.reason else ""
        return f"is {status}, by {steered.by}{reason}"
    if status == "failed":
        often = f", after {present.failures} failed attempts" if present.failures > 1 else ""
        return f"has failed{often}"
    if status == "waiting" and waiting is not None and waiting.until is not None:
        return f"waits until {render_time(waiting.until)}: the agent of {waiting.role} hit a limit"
    if status == "waiting" and waiting is not None:
        return f"waits for a person, who plays {waiting.role}"
    return f"is {status}, not ready"


def is_steppable(snapshot: Snapshot, present: ThreadState, *, now_ms: int, is_driven: bool) -> bool:
    """Check whether a step can be taken: ready, a limit is over, or failed and stepped by hand."""
    if snapshot.record.status == "failed":
        return not is_driven
    if snapshot.record.status == "waiting" and present.waiting is not None:
        until = present.waiting.until
        return until is not None and until <= now_ms
    return snapshot.record.status == "ready"


def read_active(store: Store, text: str) -> tuple[Head, Snapshot]:
    """Return head and snapshot of the active thread that *text* names; a branch may begin here."""
    head = resolve_or_begin(store, text)
    snapshot = read_snapshot(store, head.commit)
    if head.archived:
        raise ThreadNotActive(snapshot)
    return head, snapshot
