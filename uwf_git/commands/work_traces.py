"""Traces of work: the files that whoever works on a thread has there meanwhile.

Owns: a first look that costs next to nothing. Knows nothing of: who it is (running.py, which
costs what all of agents costs).
Always true: a thread without traces has nobody at work on it; one with traces may have had.
"""

import os

from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.store import Store

RUNNING = "running"
"""The status of a thread that could be stepped if nobody were at it; it is never stored."""

_LOCKS, _RUNS = "locks", "run"
_DRIVE = ".drive"


def has_traces(store: Store, thread: ThreadId) -> bool:
    """Tell whether somebody may be at work on *thread*."""
    if not store.is_kept:
        return False
    lock = store.local_path(_LOCKS, thread)
    # Who lets go of a lock empties it, so that most threads have empty ones.
    return any(map(_says_something, (lock, lock + _DRIVE, store.local_path(_RUNS, thread))))


def list_traces(store: Store) -> list[ThreadId]:
    """List the threads on which somebody may be at work, the newest first."""
    if not store.is_kept:
        return []
    found: set[ThreadId] = set()
    for folder in (_LOCKS, _RUNS):
        path = store.local_path(folder)
        names = os.listdir(path) if os.path.isdir(path) else []
        found.update(
            ThreadId(thread)
            for name in names
            if is_thread_id(thread := name.removesuffix(_DRIVE))
            and _says_something(os.path.join(path, name))
        )
    return sorted(found, reverse=True)


def _says_something(path: str) -> bool:
    try:
        return os.path.isdir(path) or os.stat(path).st_size > 0
    except OSError:
        # It is gone, or somebody put something strange in its place.
        return False
