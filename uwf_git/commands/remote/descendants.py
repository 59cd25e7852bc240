"""The branches of threads, and theirs: what goes along with a thread that is pushed or fetched."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.tracking import SharedRefs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import read_snapshot


def with_branches(
    store: Store, threads: Sequence[ThreadId], seen: SharedRefs | None = None
) -> list[ThreadId]:
    """List *threads* and all below them, as far as they are here; each once.

    Without the branches that a thread had joined when its remote was last *seen*: of a deep
    thread, only the newest commits are read.
    """
    found: dict[ThreadId, None] = {}
    waiting = list(threads)
    while waiting:
        thread = waiting.pop()
        if thread not in found:
            found[thread] = None
            waiting += _list_branches(store, thread, seen and seen.find_tip(thread))
    return list(found)


def with_family(store: Store, threads: Sequence[ThreadId], seen: SharedRefs) -> list[ThreadId]:
    found = dict.fromkeys(with_branches(store, threads, seen))
    waiting = list(threads)
    while waiting:
        head = find_head(store, waiting.pop())
        # What is damaged here, the fetch reports.
        with suppress(StoreDamaged):
            trunk = None if head is None else read_snapshot(store, head.commit).get_trunk()
            if trunk is not None and trunk not in found:
                found[trunk] = None
                waiting.append(trunk)
    return list(found)


def _list_branches(store: Store, thread: ThreadId, last: Oid | None) -> Iterator[ThreadId]:
    head = find_head(store, thread)
    if head is None:
        return
    # What is behind damage cannot be pushed either.
    with suppress(StoreDamaged):
        for snapshot in walk_history(store, head.commit):
            # The branches that it has at its *last* known commit may have gone on.
            is_last = snapshot.commit.oid == last
            has_split = is_last or snapshot.record.event == "split"
            split = snapshot.get_present().split if has_split else None
            yield from () if split is None else (child.thread for child in split.children)
            if is_last:
                return


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
