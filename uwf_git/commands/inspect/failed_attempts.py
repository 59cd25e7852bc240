"""How often a step failed before it succeeded, from the commits of its thread."""

from collections import Counter
from contextlib import suppress

from uwf_git.errors import StoreDamaged
from uwf_git.model.event_rules import STEPS
from uwf_git.model.names import NodeHash
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def count_failed_attempts(store: Store, step: Snapshot) -> int:
    """Return how many attempts failed before the step of a commit.

    Raises:
        StoreDamaged: the commit before it cannot be read.
    """
    return read_snapshot(store, step.commit.parents[0]).get_present().attempts


def count_failed_by_role(store: Store, tip: Oid, *, most: int) -> dict[str, int]:
    """Return how many attempts of each role failed; nothing of a thread with *most* commits.

    That costs a look at each of its commits. Those before damage are not counted.
    """
    counts: Counter[str] = Counter()
    with suppress(StoreDamaged):
        for number, snapshot in enumerate(walk_history(store, tip, through_forks=True), 1):
            if number == most:
                return {}
            if snapshot.record.event == "attempt" and snapshot.record.role is not None:
                counts[snapshot.record.role] += 1
    return dict(counts)


def count_all_failed_attempts(
    store: Store, tip: Oid, *, after: NodeHash | None = None
) -> dict[NodeHash, int]:
    """Return how many attempts failed before each step of a thread, by the step's node.

    With *after*, only of the steps after that one. Steps without failed attempts are left out, and
    so are attempts before a poke.

    Raises:
        StoreDamaged: the history cannot be read.
    """
    counts: dict[NodeHash, int] = {}
    seen: set[NodeHash] = set()
    step: NodeHash | None = None
    for snapshot in walk_history(store, tip, through_forks=True):
        event = snapshot.record.event
        if event in STEPS:
            node = snapshot.record.node
            if node == after:
                break
            # After a poke an equal step has the same node; the newest is the one that counts.
            step = None if node in seen else node
            seen.add(node)
        elif event == "poke":
            step = None
        elif event == "attempt" and step is not None:
            counts[step] = counts.get(step, 0) + 1
    return counts
