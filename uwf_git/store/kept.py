"""Kept commits: finished work that found its thread elsewhere.

Owns: the refs below refs/uwf/kept/, `<thread>/<commit>`, which keep such a commit from git's gc.
Knows nothing of: why it came too late, and what becomes of it.
Always true: they stay on this machine; no push takes them along.
Format: FORMAT.md, "Refs".
"""

import os
from contextlib import suppress

from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.store import Store

KEPT = "refs/uwf/kept/"


def keep_commit(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Keep *commit*, which was to become the head of *thread* and did not.

    Raises:
        RefLocked: another program holds git's lock on the ref and does not let go.
    """
    store.refs.create(_ref(thread, commit), commit)


def list_kept(store: Store, thread: ThreadId) -> list[Oid]:
    """List the commits that were kept for *thread*."""
    return [Oid(name) for name in store.refs.names(f"{KEPT}{thread}/") if is_oid(name)]


def list_kept_threads(store: Store) -> list[ThreadId]:
    """List the threads for which commits were kept."""
    # A packed ref is told with the folder that it is in, and a folder of loose ones not at all.
    found = {name.partition("/")[0] for name in store.refs.names(KEPT) if "/" in name}
    if store.is_kept:
        with suppress(FileNotFoundError):
            found.update(os.listdir(os.path.join(store.path, KEPT)))
    return sorted(ThreadId(name) for name in found if is_thread_id(name))


def let_go(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Keep *commit* no longer, if it was kept: a thread has taken it up."""
    if store.refs.find(_ref(thread, commit)) is not None:
        store.refs.delete(_ref(thread, commit), seen=commit)


def _ref(thread: ThreadId, commit: Oid) -> str:
    return f"{KEPT}{thread}/{commit}"
