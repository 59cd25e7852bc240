"""Open turns: what agents are playing now, as events want to tell it.

Owns: finding the turns that have begun and are not recorded yet.
Knows nothing of: whether a process still lives (running.py). A turn that has begun stays begun: if
its engine died, the next step records what became of it.
Always true: a turn is named by the commit after which it began, which is also the name of the
folder of its run; so whoever looks twice finds the same one.
"""

import os
from collections.abc import Container, Iterator

from uwf_git.agents.spool import PID
from uwf_git.commands.play_agent import find_player
from uwf_git.commands.thread_events import enter_turn
from uwf_git.engine.events import Entered
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.heads import find_head
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store


def list_open_turns(store: Store, *, known: Container[Oid] = ()) -> Iterator[Entered]:
    """Give the turns that are being played, but for those that began after a commit of *known*."""
    if not store.is_kept:
        return
    try:
        threads = sorted(os.listdir(store.local_path("run")))
    except FileNotFoundError:
        return
    for thread in threads:
        if is_thread_id(thread) and (turn := find_open_turn(store, ThreadId(thread), known=known)):
            yield turn


def find_open_turn(store: Store, thread: ThreadId, *, known: Container[Oid] = ()) -> Entered | None:
    """Give the turn of *thread* that is being played, unless there is none, or it is *known*."""
    if not _has_another_run(store, thread, known):
        return None
    try:
        head = find_head(store, thread)
        base = None if head is None else find_base(store, read_snapshot(store, head.commit))
        if base is None or base in known:
            return None
        run_dir = store.local_path("run", thread, base)
        started_ms = os.stat(os.path.join(run_dir, PID)).st_mtime_ns // 1_000_000
        role, agent = find_player(run_dir)
        if role is None:
            return None
        snapshot = read_snapshot(store, base)
        return enter_turn(snapshot, role=role, agent=agent, started_ms=started_ms)
    except (FileNotFoundError, StoreDamaged):
        # It has not begun yet, or it is over: then its commit tells of it, or will not be read.
        return None


def _has_another_run(store: Store, thread: ThreadId, known: Container[Oid]) -> bool:
    """Tell whether there is a folder of a run that is not *known*: no commit is read for it."""
    try:
        names = os.listdir(store.local_path("run", thread))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return any(is_oid(name) and Oid(name) not in known for name in names)
