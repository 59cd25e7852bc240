"""The commits of a thread, its steps, the threads around it, and preserved work."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

from uwf_git.model.builtin import START, find_reference
from uwf_git.model.names import NodeHash, ThreadId, is_thread_id
from uwf_git.model.node import Node
from uwf_git.store.objects.commit import damaged_commit
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.local_files import settings_file
from uwf_git.store.threads.snapshot import (
    Snapshot,
    find_previous,
    read_snapshot,
)

if TYPE_CHECKING:
    from uwf_git.store.git.fenced import Kept


# Walk the commits of a thread, newest first, along first parents.


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Yield the snapshots of a thread from *tip* back to its ``start`` or ``fork`` commit.

    With *through_forks* the walk goes on into the thread that was forked.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)


# The threads of which a branch is one, as far as they are in this store.


def find_tip(store: Store, thread: ThreadId) -> Snapshot | None:
    head = find_head(store, thread)
    return None if head is None else read_snapshot(store, head.commit)


def read_trunk(store: Store, snapshot: Snapshot) -> Snapshot | None:
    trunk = snapshot.get_trunk()
    return None if trunk is None else find_tip(store, trunk)


def walk_trunks(store: Store, snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield the threads around a branch that are here, the nearest first."""
    seen = {snapshot.record.thread}
    while (trunk := read_trunk(store, snapshot)) is not None:
        # Forged threads may be branches of each other.
        if trunk.record.thread in seen:
            raise damaged_commit(trunk.commit.oid, "is of a thread that is around itself")
        seen.add(trunk.record.thread)
        yield trunk
        snapshot = trunk


def read_root(store: Store, snapshot: Snapshot) -> Snapshot:
    """Read the outermost thread here that has this thread as a branch, or else *snapshot*."""
    *_, root = (snapshot, *walk_trunks(store, snapshot))
    return root


def find_settings(store: Store, thread: ThreadId) -> "Kept":
    """Return the settings of git that the project had when the outermost thread began."""
    from uwf_git.store.git.fenced import read_settings  # noqa: PLC0415 (few threads start git)

    tip = find_tip(store, thread)
    if tip is not None:
        thread = read_root(store, tip).record.thread
    return read_settings(settings_file(store, thread))


# The steps of a thread at one commit, read when they are accessed.
#
# The chain leads from each step to the one before it, so the newest is read without the rest, and
# an older one with those after it. Names are remembered, 80 bytes each; nodes up to a limit in
# bytes. The chain of a branch may go on with the steps before it: those of the thread that split.

MOST_BYTES = 16 * 1024 * 1024
"""How much is remembered of the nodes that were read: some 7,000 small steps."""

# What a node takes in memory beside its text, about.
_NODE_BYTES = 2000


class StepChain:
    """The StepNodes of a thread at one commit, by their place: 0 is the first step.

    For a branch, *before* has how many steps the thread had that split, then the thread around that
    thread, and so on: so many of these steps are the first. Several Python threads may read at
    once.
    """

    def __init__(self, snapshot: Snapshot, before: Sequence[int] = ()) -> None:
        self._snapshot = snapshot
        counts = (snapshot.record.depth, *before)
        self._length = sum(counts)
        self._starts = list(accumulate(counts[:-1]))
        """How many steps are newer than each StartNode of a branch."""

        self._names: list[NodeHash] = []
        """Newest first, as far as the chain was followed."""

        self._marked = snapshot.record.node
        self._nodes: ByteCache[int, Node] = ByteCache(MOST_BYTES)
        self._lock = Lock()

    def __len__(self) -> int:
        return self._length

    def get(self, place: int) -> Node:
        back = self._length - 1 - place
        with self._lock:
            if not self._names:
                self._names.append(self._skip_starts(self._snapshot.record.node, newer=0))
            while len(self._names) <= back:
                self._read(len(self._names) - 1)
            return self._read(back)

    def _read(self, back: int) -> Node:
        """Return the step that is *back* steps before the newest, and learn the name before it."""
        held = self._nodes.get(back)
        if held is not None:
            return held
        name = self._names[back]
        node = self._snapshot.get_node(name)
        previous = find_previous(node)
        if previous is None:
            raise self._snapshot.broken_chain(name)
        if len(self._names) == back + 1:
            self._follow(previous)
        self._nodes.put(back, node, len(repr(node.payload)) + _NODE_BYTES)
        return node

    def _follow(self, previous: NodeHash) -> None:
        """Remember the next older name, unless a forged chain is a cycle (Brent's algorithm)."""
        if previous == self._marked:
            raise self._snapshot.broken_chain(previous)
        self._names.append(self._skip_starts(previous, newer=len(self._names)))
        if len(self._names).bit_count() == 1:
            self._marked = previous

    def _skip_starts(self, name: NodeHash, *, newer: int) -> NodeHash:
        """Return the step that *name*, with so many *newer* steps, stands for.

        The StartNode of a branch stands for the head of the thread that split.
        """
        for _start in range(self._starts.count(newer)):
            node = self._snapshot.get_node(name)
            is_start = node.type == START and isinstance(node.payload, dict)
            parent = find_reference(node.payload.get("parent")) if is_start else None
            if parent is None:
                raise self._snapshot.broken_chain(name)
            name = parent
        return name


# Preserved commits: finished work whose thread had moved on, behind refs/uwf/kept/.
#
# The refs `<thread>/<commit>` protect them from gc; no push takes them along. Format: FORMAT.md,
# "Refs".

KEPT = "refs/uwf/kept/"


def preserve_commit(store: Store, thread: ThreadId, commit: Oid) -> None:
    store.refs.create(_ref(thread, commit), commit)


def list_preserved(store: Store, thread: ThreadId) -> list[Oid]:
    return [Oid(name) for name in store.refs.names(f"{KEPT}{thread}/") if is_oid(name)]


def list_preserved_threads(store: Store) -> list[ThreadId]:
    # names() lists packed refs in subfolders, but loose ones only directly below the prefix.
    found = {name.partition("/")[0] for name in store.refs.names(KEPT) if "/" in name}
    with suppress(FileNotFoundError):
        found.update(os.listdir(os.path.join(store.path, KEPT)))
    return sorted(ThreadId(name) for name in found if is_thread_id(name))


def release(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Remove the ref that preserves *commit*, if there is any: a thread reaches the commit now."""
    if store.refs.find(_ref(thread, commit)) is not None:
        store.refs.delete(_ref(thread, commit), seen=commit)


def _ref(thread: ThreadId, commit: Oid) -> str:
    return f"{KEPT}{thread}/{commit}"
