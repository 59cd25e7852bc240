"""Find open turns: begun, and not recorded yet.

A turn is named by the commit after which it began, as is its run directory. It stays open when its
engine dies: the next step records the outcome.
"""

from collections.abc import Container, Iterator

from uwf_git.agents.run_files import find_run_start_ms
from uwf_git.commands.agent_run.runs import find_player, read_begun_turn
from uwf_git.commands.events.commit_events import describe_turn
from uwf_git.engine.events import TurnStarted
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.run_dir import get_run_dir, list_run_dirs, list_threads_with_runs
from uwf_git.store.threads.snapshot import read_snapshot


def list_open_turns(store: Store, *, known: Container[Oid] = ()) -> Iterator[TurnStarted]:
    """Yield the open turns, except those that began after one of the commits *known*."""
    for thread in list_threads_with_runs(store):
        if turn := find_open_turn(store, thread, known=known):
            yield turn


def find_open_turn(
    store: Store, thread: ThreadId, *, known: Container[Oid] = ()
) -> TurnStarted | None:
    """Return the open turn of *thread*; None if it has none, or that began after one of *known*."""
    if not _has_another_run(store, thread, known):
        return None
    try:
        head = find_head(store, thread)
        base = None if head is None else read_snapshot(store, head.commit).turn_start
        if base is None or base in known:
            return None
        run = get_run_dir(store, thread, base)
        started_ms = find_run_start_ms(run.path)
        role, agent = find_player(run)
        if started_ms is None or role is None:
            return None
        begun = read_begun_turn(run)
        at = None if begun is None else begun.at
        snapshot = read_snapshot(store, base)
        return describe_turn(snapshot, role=role, agent=agent, started_ms=started_ms, at=at)
    except StoreDamaged:
        # The turn has not begun yet, or has ended: then its commit has the event.
        return None


def _has_another_run(store: Store, thread: ThreadId, known: Container[Oid]) -> bool:
    """Check for a run directory that is not *known*, without reading a commit."""
    return any(run.commit not in known for run in list_run_dirs(store, thread))
