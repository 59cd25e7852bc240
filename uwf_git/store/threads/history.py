"""The commits of a thread: how each is written, its steps, and the threads around it."""

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.debug_log import debug
from uwf_git.model.builtin import START, find_reference
from uwf_git.model.event_folds import Cause, Standing, Words, describe_event
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import NodeHash, ThreadId, is_thread_id
from uwf_git.model.node import Node
from uwf_git.model.thread import Event, ThreadState, TransitionRecord
from uwf_git.store.nodes.tree import FILE_MODE, TREE_MODE, add_nodes, check_node, unite_nodes
from uwf_git.store.objects.commit import CommitDraft, Signing, encode_json, write_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.message import build_thread_message
from uwf_git.store.threads.run_dir import settings_file
from uwf_git.store.threads.snapshot import (
    HEAD_FILE,
    NODES,
    NOW_FILE,
    START_FILE,
    Snapshot,
    find_previous,
    read_snapshot,
)

if TYPE_CHECKING:
    from uwf_git.store.git.fenced import Kept


# Write the commit of a transition: tree, nodes and message, before any ref moves.
#
# The tree holds every node that the thread reaches (its closure). The caller moves the ref
# afterwards (heads.py). Format: FORMAT.md, "The tree of a thread commit".


class NewCommit(NamedTuple):
    record: TransitionRecord
    words: Words
    present: ThreadState

    nodes: tuple[Node, ...] = ()

    @property
    def said(self) -> str:
        """The subject, after the role or the event."""
        return self.words.said


def read_standing(snapshot: Snapshot) -> Standing:
    return Standing(snapshot.record, snapshot.get_present(), snapshot.commit.oid)


def build_next(
    before: Standing, event: Event, cause: Cause, *, nodes: tuple[Node, ...] = ()
) -> NewCommit:
    """Build the commit of *event*; record, words and now.json follow from the event's rule."""
    after = apply_event(before, event, cause)
    return NewCommit(after.record, describe_event(before, event, cause), after.state, nodes)


def record_start(store: Store, new: NewCommit, signing: Signing) -> Oid:
    return write_draft(store, draft_next(store.objects, (), new), new, signing)


def record_next(store: Store, parent: Snapshot, new: NewCommit, signing: Signing) -> Oid:
    return write_draft(store, draft_next(store.objects, (parent,), new), new, signing)


def draft_next(
    objects: ObjectStore,
    parents: Sequence[Snapshot],
    new: NewCommit,
    *,
    is_own_start: bool = False,
    grown_from: Snapshot | None = None,
) -> CommitDraft:
    """Draft the commit that follows *parents*; nothing is written.

    The first of the parents is the thread's own; all their nodes are in its tree. With
    *is_own_start* the record's node is the StartNode as well: a thread begins here. *grown_from*
    is a commit that all the parents follow: what it has is not read again in each.
    """
    # A node that does not fit its schema cannot be read again: refuse it before the commit.
    added = [check_node(node) for node in new.nodes]
    base = None if grown_from is None else grown_from.nodes
    united = unite_nodes(objects, [parent.nodes for parent in parents], base)
    growth = add_nodes(united.objects, united.nodes, added)
    now = Blob.from_string(encode_json(new.present.as_document()))
    head = growth.blobs.get(new.record.node)
    start = head
    if parents and not is_own_start:
        start = parents[0].get_entry(START_FILE)
        head = head or parents[0].get_entry(HEAD_FILE)
    return CommitDraft(
        tree=_tree(start=start, head=head, now=now.id, nodes=growth.nodes),
        parents=tuple(parent.commit for parent in parents),
        message=build_thread_message(new.record, new.words),
        objects=[*united.without(growth.outgrown), *growth.objects, now],
    )


def write_draft(store: Store, draft: CommitDraft, new: NewCommit, signing: Signing) -> Oid:
    commit = write_commit(store.objects, draft, signing)
    record = new.record
    debug("BPASMJSC", "commit written", thread=record.thread, event=record.event, commit=commit)
    if store.own_transitions is not None:
        store.own_transitions.note_recorded(commit)
    return commit


def _tree(*, start: ObjectID | None, head: ObjectID | None, now: ObjectID, nodes: ObjectID) -> Tree:
    tree = Tree()
    if start is None or head is None:
        raise ValueError("a thread commit needs a StartNode and a head")  # a bug of the caller
    tree[START_FILE.encode()] = (FILE_MODE, start)
    tree[HEAD_FILE.encode()] = (FILE_MODE, head)
    tree[NOW_FILE.encode()] = (FILE_MODE, now)
    tree[NODES.encode()] = (TREE_MODE, nodes)
    return tree


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
    while (trunk := read_trunk(store, snapshot)) is not None:
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
        self._nodes: OrderedDict[int, tuple[Node, int]] = OrderedDict()
        self._bytes = 0
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
        if back in self._nodes:
            return self._nodes[back][0]
        name = self._names[back]
        node = self._snapshot.get_node(name)
        previous = find_previous(node)
        if previous is None:
            raise self._snapshot.broken_chain(name)
        if len(self._names) == back + 1:
            self._follow(previous)
        self._keep(back, node)
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

    def _keep(self, back: int, node: Node) -> None:
        weight = len(repr(node.payload)) + _NODE_BYTES
        self._nodes[back] = node, weight
        self._bytes += weight
        while self._bytes > MOST_BYTES:
            self._bytes -= self._nodes.popitem(last=False)[1][1]


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
