"""What a thread and its branches spent: the limits of a thread are for all of them together."""

from typing import Any, NamedTuple

from uwf_git.commands.turn.limits import LimitReached
from uwf_git.engine.limits import find_spent
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ThreadState, add_usage
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_root
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class Spending(NamedTuple):
    """The limits that hold for a thread, and what was spent of them."""

    thread: ThreadId
    """Whose limits they are: the thread's own, or those of the one that it is a branch of."""

    present: ThreadState
    """That thread's state, with what its branches spent; ``depth`` counts all steps."""


def read_spending(store: Store, snapshot: Snapshot, present: ThreadState) -> Spending:
    """Return the limits for the thread at *snapshot*, and what was spent of them here.

    Branches that were joined count in the thread itself; those that only another clone has do not.
    """
    root = read_root(store, snapshot)
    at_root = present if root is snapshot else root.get_present()
    steps = sum(at_root.visits.values())
    spent = at_root._replace(depth=steps or at_root.depth)
    if at_root.limits and at_root.split is not None:
        spent = _add_branches(store, root, spent)
    return Spending(root.record.thread, spent)


def find_limit(store: Store, snapshot: Snapshot, present: ThreadState) -> LimitReached | None:
    """Return the limit that lets the thread at *snapshot* begin no step; None if there is none."""
    spending = read_spending(store, snapshot, present)
    spent = find_spent(spending.present)
    return None if spent is None else LimitReached(spending.thread, spent)


def find_steps_left(store: Store, thread: ThreadId) -> int | None:
    """Return how many steps *thread* and its branches may still take; None if as many as they like.

    Steps under way are not counted.
    """
    snapshot = read_snapshot(store, get_head(store, thread).commit)
    present = read_spending(store, snapshot, snapshot.get_present()).present
    most = present.limits.get("maxSteps")
    return None if most is None else most - present.depth


def _add_branches(store: Store, at: Snapshot, spent: ThreadState) -> ThreadState:
    from uwf_git.commands.split.family import list_branches  # noqa: PLC0415 (few threads split)

    inherited = sum(at.get_present().visits.values())
    for branch in list_branches(store, at):
        if branch.head is None:
            continue
        inner = read_snapshot(store, branch.head.commit)
        present = inner.get_present()
        known = inherited if "entry" in inner.get_start().payload else 0
        usage: dict[str, Any] = add_usage(dict(spent.usage), dict(present.usage))
        spent = spent._replace(
            depth=spent.depth + sum(present.visits.values()) - known,
            usage=usage,
            execution_ms=spent.execution_ms + present.execution_ms,
        )
        if present.split is not None:
            spent = _add_branches(store, inner, spent)
    return spent
