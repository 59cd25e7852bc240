"""The branches of threads, and theirs: what goes along with a thread that is pushed or forked."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import walk_history


def with_branches(store: Store, threads: Sequence[ThreadId]) -> list[ThreadId]:
    """List *threads* and all below them, as far as they are here; each once."""
    found: dict[ThreadId, None] = {}
    waiting = list(threads)
    while waiting:
        thread = waiting.pop()
        if thread not in found:
            found[thread] = None
            waiting += _list_branches(store, thread)
    return list(found)


def _list_branches(store: Store, thread: ThreadId) -> Iterator[ThreadId]:
    head = find_head(store, thread)
    if head is None:
        return
    # What is behind damage cannot be pushed either.
    with suppress(StoreDamaged):
        for snapshot in walk_history(store, head.commit):
            split = snapshot.get_present().split if snapshot.record.event == "split" else None
            yield from () if split is None else (child.thread for child in split.children)


def list_joined(store: Store, commit: Oid) -> set[Oid]:
    """List the ends of the branches that the history of *commit* has joined, and of theirs."""
    found: set[Oid] = set()
    waiting = [commit]
    while waiting:
        with suppress(StoreDamaged):
            for snapshot in walk_history(store, waiting.pop()):
                joined = snapshot.commit.parents[1:] if snapshot.record.event == "join" else ()
                found.update(joined)
                waiting += joined
    return found
