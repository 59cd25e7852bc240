"""The steps of a thread at one commit, read when they are accessed.

The chain leads from each step to the one before it, so the newest is read without the rest, and an
older one with those after it. Names are remembered, 80 bytes each; nodes up to a limit in bytes.
The chain of a branch may go on with the steps before it: those of the thread that split.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import START, STEP
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.store.objects.commit import damaged_commit
from uwf_git.store.threads.snapshot import Snapshot

MOST_BYTES = 16 * 1024 * 1024
"""How much is remembered of the nodes that were read: some 7,000 small steps."""

# What a node takes in memory beside its text, about.
_NODE_BYTES = 2000


class StepChain:
    """The StepNodes of a thread at one commit, by their place: 0 is the first step.

    *before* has, for a branch, how many steps the thread had that split, the thread around that,
    and so on: so many of these are the first steps. Several Python threads may read at once.
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
        """Return the step at *place*, from 0 to one less than the length.

        Raises:
            MissingNode, DamagedNode, StoreDamaged: the chain is broken between it and the newest.
        """
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
        is_step = node.type == STEP and isinstance(node.payload, dict)
        previous = find_reference(node.payload.get("prev")) if is_step else None
        if previous is None:
            raise self._broken(name)
        if len(self._names) == back + 1:
            self._follow(previous)
        self._keep(back, node)
        return node

    def _follow(self, previous: NodeHash) -> None:
        """Remember the next older name, unless the chain is a cycle: a forged one may be.

        Brent's algorithm: compare with the name at the last power of two.
        """
        if previous == self._marked:
            raise self._broken(previous)
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
                raise self._broken(name)
            name = parent
        return name

    def _keep(self, back: int, node: Node) -> None:
        weight = len(repr(node.payload)) + _NODE_BYTES
        self._nodes[back] = node, weight
        self._bytes += weight
        while self._bytes > MOST_BYTES:
            self._bytes -= self._nodes.popitem(last=False)[1][1]

    def _broken(self, name: NodeHash) -> StoreDamaged:
        oid = self._snapshot.commit.oid
        return damaged_commit(oid, f"has {name} in its chain, which is not a step")
