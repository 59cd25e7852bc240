"""Walk the commits of a thread, newest first, along first parents."""

from collections.abc import Iterator

from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Yield the snapshots of a thread from *tip* back to its ``start`` or ``fork`` commit.

    With *through_forks* the walk goes on into the thread that was forked.

    Raises:
        StoreDamaged, BadMessage: the history is broken there.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)
