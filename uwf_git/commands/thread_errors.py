"""Why a thread cannot be moved: told the same way by every command that moves one."""

from uwf_git.errors import Refused
from uwf_git.store.heads import Head, get_head, resolve_thread
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store


class ThreadNotActive(Refused):
    """The thread has ended."""

    code = "thread-not-active"

    def __init__(self, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} is not active: it was archived as {record.status} "
            f"at {record.node}",
            hint=f"start a new one with `uwf thread start {record.workflow_name} -p …`",
            thread=record.thread,
            status=record.status,
            head=record.node,
        )


class ThreadNotReady(Refused):
    """The thread's status does not allow a step."""

    code = "thread-not-ready"

    def __init__(self, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} is {record.status}, not ready",
            hint=f"see why with `uwf thread show {record.thread}`",
            thread=record.thread,
            status=record.status,
        )


def read_active(store: Store, text: str) -> tuple[Head, Snapshot]:
    """Read the active thread that *text* means.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: *text* does not mean one.
        ThreadNotActive: it has ended.
    """
    head = get_head(store, resolve_thread(store, text))
    snapshot = read_snapshot(store, head.commit)
    if head.archived:
        raise ThreadNotActive(snapshot)
    return head, snapshot
