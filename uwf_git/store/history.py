"""History: the commits of a thread, one after the other.

Owns: the walk along first parents. Knows nothing of: what the commits mean.
Always true: a thread's own story ends at its ``start`` or ``fork`` commit, whatever lies behind.
"""

from collections.abc import Iterator

from uwf_git.model.thread import CONTROLS
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Give the snapshots of a thread from *tip* back to its beginning, newest first.

    *through_forks* goes on behind a ``fork``, along the thread that it came from.

    Raises:
        DamagedCommit, BadMessage: the history is broken there.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)


def find_base(store: Store, snapshot: Snapshot) -> Oid:
    """Give the commit after which the turn began that *snapshot* is at.

    That is the snapshot's own, unless somebody steered the thread since (paused it, patched its
    state): an agent that is at work meanwhile works on the same turn.
    """
    while snapshot.record.event in CONTROLS and snapshot.commit.parents:
        before = read_snapshot(store, snapshot.commit.parents[0])
        if before.record.workflow != snapshot.record.workflow:
            # Another workflow: whatever was begun under the old one is another turn's.
            break
        snapshot = before
    return snapshot.commit.oid
