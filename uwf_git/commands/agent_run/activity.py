"""A cheap first check for work on a thread; running.py finds the worker, but imports much more."""

import os
import stat

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import has_runs, list_threads_with_runs

RUNNING = "running"
"""The shown status of a ready thread that is being worked on; it is never stored."""

_LOCKS = "locks"
_DRIVE = ".drive"


def may_be_active(store: Store, thread: ThreadId) -> bool:
    lock = store.local_path(_LOCKS, thread)
    # A lock is emptied when it is released, so most threads have empty lock files.
    return _has_content(lock) or _has_content(lock + _DRIVE) or has_runs(store, thread)


def list_possibly_active(store: Store) -> list[ThreadId]:
    folder = store.local_path(_LOCKS)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    locked = {
        ThreadId(thread)
        for name in names
        if is_thread_id(thread := name.removesuffix(_DRIVE))
        and _has_content(os.path.join(folder, name))
    }
    return sorted(locked.union(list_threads_with_runs(store)), reverse=True)


def _has_content(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        # It is gone, or a link to itself.
        return False
    return found.st_size > 0 or stat.S_ISDIR(found.st_mode)
