"""Node roots: commits whose trees keep nodes, and finding a node in one.

The tip of a thread, an archive or refs/cas/nodes keeps all its nodes; of a workflow each version
keeps its own. A damaged root is skipped, so that it does not hide the nodes of others.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.nodes.tree import NODES, find_names, find_node
from uwf_git.store.objects.commit import CommitView, find_entry, read_commit
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import WORKFLOWS


class NodeRoot(NamedTuple):
    """A commit whose tree keeps nodes, and its ref."""

    store: Store
    ref: str
    commit: CommitView

    def find(self, name: NodeHash) -> Node | None:
        """Return the node *name*; None if it is not there.

        Raises:
            StoreDamaged: the node, or a folder on the way to it, is damaged.
        """
        nodes = self._folder()
        return None if nodes is None else find_node(self.store.objects, nodes, name)

    def names(self, prefix: str) -> Iterator[NodeHash]:
        """List the names that begin with *prefix*; their blobs are not read.

        Raises:
            StoreDamaged: a folder on the way cannot be read.
        """
        yield from find_names(self.store.objects, self._folder(), prefix)

    def lists(self, name: NodeHash) -> bool:
        """Check whether the name *name* is there; its blob is not read."""
        try:
            return any(True for _name in self.names(name))
        except StoreDamaged:
            return False

    def list_readable(self, prefix: str) -> Iterator[NodeHash]:
        """List the names that begin with *prefix*, in the folders that can be read."""
        with suppress(StoreDamaged):
            yield from self.names(prefix)

    def _folder(self) -> ObjectID | None:
        try:
            return find_entry(self.store.objects, self.commit, NODES)
        except StoreDamaged:
            # The tree is damaged; `uwf verify` reports it.
            return None


def open_root(store: Store, ref: str) -> NodeRoot | None:
    """Return the root at the tip of *ref*; None if it is missing or damaged."""
    try:
        oid = store.refs.find(ref)
        return None if oid is None else NodeRoot(store, ref, read_commit(store.objects, oid))
    except StoreDamaged:
        return None


def open_roots(store: Store, ref: str) -> Iterator[NodeRoot]:
    """Yield the roots of *ref*, newest first, up to the first that cannot be read."""
    root = open_root(store, ref)
    while root is not None:
        yield root
        if not keeps_versions(ref) or not root.commit.parents:
            return
        try:
            before = read_commit(store.objects, root.commit.parents[0])
        except StoreDamaged:
            return
        root = root._replace(commit=before)


def keeps_versions(ref: str) -> bool:
    """Check whether commits behind the tip of *ref* keep nodes that the tip does not."""
    return ref.startswith(WORKFLOWS)
