"""Preserved commits: finished work whose thread had moved on, behind refs/uwf/kept/.

The refs `<thread>/<commit>` protect them from gc; no push takes them along.
Format: FORMAT.md, "Refs".
"""

import os
from contextlib import suppress

from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store

KEPT = "refs/uwf/kept/"


def preserve_commit(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Protect *commit*, which could not become the head of *thread*, from gc.

    Raises:
        RefLocked: another program keeps git's lock on the ref.
    """
    store.refs.create(_ref(thread, commit), commit)


def list_preserved(store: Store, thread: ThreadId) -> list[Oid]:
    """List the preserved commits of *thread*."""
    return [Oid(name) for name in store.refs.names(f"{KEPT}{thread}/") if is_oid(name)]


def list_preserved_threads(store: Store) -> list[ThreadId]:
    """List the threads that have preserved commits."""
    # names() lists packed refs in subfolders, but loose ones only directly below the prefix.
    found = {name.partition("/")[0] for name in store.refs.names(KEPT) if "/" in name}
    with suppress(FileNotFoundError):
        found.update(os.listdir(os.path.join(store.path, KEPT)))
    return sorted(ThreadId(name) for name in found if is_thread_id(name))


def release(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Remove the ref that preserves *commit*, if there is one: a thread reaches it now."""
    if store.refs.find(_ref(thread, commit)) is not None:
        store.refs.delete(_ref(thread, commit), seen=commit)


def _ref(thread: ThreadId, commit: Oid) -> str:
    return f"{KEPT}{thread}/{commit}"
