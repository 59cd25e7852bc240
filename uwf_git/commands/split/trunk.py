"""Which branches work apart from the others of their thread, each in a worktree."""

from uwf_git.commands.split.plan import read_entry, read_flow
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_workflow
from uwf_git.store.threads.history import read_trunk
from uwf_git.store.threads.snapshot import Snapshot


def find_isolation(snapshot: Snapshot) -> str | None:
    """Return where its trunk split, if each of the branches there has a worktree of its own."""
    # Most threads are no branches, and nothing is read for them.
    entry = None if snapshot.record.parent_thread is None else read_entry(snapshot)
    if entry is None:
        return None
    container = entry.up if entry.turn is None else entry.without_turn()
    flow = read_flow(snapshot, get_workflow(snapshot, snapshot.record.workflow))
    if flow is None or container is None:
        return None
    fields = flow.nodes[container.place].fields
    return str(container) if fields.get("isolation") == "worktree" else None


def find_owner(store: Store, snapshot: Snapshot) -> Snapshot | None:
    """Return whose worktree the thread works in: its own tip, or that of a thread around it."""
    at: Snapshot | None = snapshot
    while at is not None and find_isolation(at) is None:
        at = read_trunk(store, at)
    return at
