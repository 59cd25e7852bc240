"""A kill that is under way: why the thread is to end, in `<git dir>/uwf/locks/<id>.kill`.

Written under ``lock_stop`` before an agent is stopped. The process that kills may be a child of
that agent and end with it; the request stays, and whoever finds the lock free ends the thread.
"""

import os

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.disk.durable import remove_file, replace_file
from uwf_git.store.store import Store

SUFFIX = ".kill"


def write_kill_request(store: Store, thread: ThreadId, reason: str) -> None:
    """Record that *thread* is to end; *reason* may be empty."""
    # A power loss ends the agent too, so this file need not survive one.
    replace_file(_path(store, thread), reason.encode(errors="replace"), durable=False)


def find_kill_request(store: Store, thread: ThreadId) -> str | None:
    """Return why *thread* is to end; None if no kill of it is under way."""
    path = _path(store, thread)
    # Each step asks twice, and next to none finds a request.
    if not os.path.lexists(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def forget_kill_request(store: Store, thread: ThreadId) -> None:
    """Remove the request, if there is one."""
    remove_file(_path(store, thread))


def _path(store: Store, thread: ThreadId) -> str:
    return store.local_path("locks", thread) + SUFFIX
