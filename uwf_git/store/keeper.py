"""Keepers: the commits that keep nodes, and finding a node in one.

Owns: which commits of a ref are asked. Knows nothing of: which refs there are (keeping_refs.py),
how a folder of nodes is laid out (node_tree.py).
Always true: the tip of a thread, an archive or refs/cas/nodes keeps all that it ever kept; of a
workflow each version keeps its own. What is damaged keeps nothing, and hides nothing either.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.commit import CommitView, find_entry, read_commit
from uwf_git.store.node_tree import find_names, find_node
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.snapshot import NODES
from uwf_git.store.store import Store


class Keeper(NamedTuple):
    """A commit that keeps nodes, and the ref that has it."""

    store: Store
    ref: str
    commit: CommitView

    def find(self, name: NodeHash) -> Node | None:
        """Give the node *name* if it is there.

        Raises:
            StoreDamaged: it is there, but cannot be read or is not what its name says; or the
                folder that it might be in cannot be read.
        """
        nodes = self._folder()
        return None if nodes is None else find_node(self.store.objects, nodes, name)

    def names(self, prefix: str) -> Iterator[NodeHash]:
        """List the nodes that should be there and begin with *prefix*, whatever their state.

        Raises:
            StoreDamaged: a folder that they might be in cannot be read.
        """
        yield from find_names(self.store.objects, self._folder(), prefix)

    def lists(self, name: NodeHash) -> bool:
        """Tell whether the node *name* should be there, whatever state it is in."""
        try:
            return any(True for _name in self.names(name))
        except StoreDamaged:
            return False

    def list_readable(self, prefix: str) -> Iterator[NodeHash]:
        """List the nodes that begin with *prefix*, as far as that can be read."""
        with suppress(StoreDamaged):
            yield from self.names(prefix)

    def _folder(self) -> ObjectID | None:
        try:
            return find_entry(self.store.objects, self.commit, NODES)
        except StoreDamaged:
            # Whether this commit had any nodes nobody knows; `uwf verify` names it.
            return None


def open_keeper(store: Store, ref: str) -> Keeper | None:
    """Open *ref* at its tip; None if there is none, or it is damaged."""
    try:
        oid = store.refs.find(ref)
        return None if oid is None else Keeper(store, ref, read_commit(store.objects, oid))
    except StoreDamaged:
        return None


def open_keepers(store: Store, ref: str) -> Iterator[Keeper]:
    """Open every commit that keeps nodes for *ref*, newest first, as far as they can be read."""
    keeper = open_keeper(store, ref)
    while keeper is not None:
        yield keeper
        if not keeps_versions(ref) or not keeper.commit.parents:
            return
        try:
            before = read_commit(store.objects, keeper.commit.parents[0])
        except StoreDamaged:
            return
        keeper = keeper._replace(commit=before)


def keeps_versions(ref: str) -> bool:
    """Tell whether the commits behind the tip of *ref* keep nodes that the tip does not."""
    return ref.startswith(WORKFLOWS)
