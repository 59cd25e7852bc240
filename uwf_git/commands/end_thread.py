"""Ending: the last commit of a thread, and its move to the archive.

Owns: the order commit, archive, forget. Knows nothing of: why it ends.
Always true: the chain gets no node by it; its head is the one before.
"""

from typing import Literal

from uwf_git.commands.caller import Caller
from uwf_git.commands.play_agent import forget_runs
from uwf_git.engine.subject import count_steps
from uwf_git.store.heads import Head, archive_head
from uwf_git.store.history import find_base
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import forget_lock
from uwf_git.store.workdirs import forget_workdir

Outcome = Literal["completed", "killed"]


def end_thread(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], *, outcome: Outcome, body: str = ""
) -> Head:
    """End the thread whose lock the caller holds; *body* is the reason, if there is one.

    Raises:
        HeadMoved: somebody moved it in the meantime.
    """
    head, snapshot = seen
    record = snapshot.record._replace(
        event="end" if outcome == "completed" else "kill",
        status=outcome,
        role=None,
        agent=None,
        attempt=None,
        forked_from=None,
        signal=None,
    )
    transition = Transition(
        record=record,
        said=f"{outcome} after {count_steps(snapshot.record.depth)}",
        present=snapshot.get_present(),
        body=body,
    )
    ended = archive_head(
        store, head, record_next(store, snapshot, transition, caller.signing(store))
    )
    forget_runs(store, head.thread, find_base(store, snapshot))
    forget_workdir(store, head.thread)
    forget_lock(store, head.thread)
    return ended
