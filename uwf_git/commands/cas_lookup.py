"""Looking nodes up: many of them in one command, from whichever ref keeps them.

Owns: the order in which refs are asked. Knows nothing of: how a folder of nodes is laid out.
Always true: each ref is opened once in the life of a lookup, and only when those before it have
not given what was asked for; the ref that gave the last node is asked first, since a walk stays
in one thread; one damaged ref does not hide the nodes of all others.
Why not ``find_any_node``: it begins with all refs anew for each node.
"""

from collections.abc import Iterator
from typing import NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.closure import direct_references
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.commit import CommitView, find_entry, read_commit
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.loose_nodes import NODES_REF, NoSuchNode
from uwf_git.store.node_tree import find_names, find_node
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.snapshot import NODES
from uwf_git.store.store import Store


class Keeper(NamedTuple):
    """A ref that keeps nodes, as it was when it was opened."""

    store: Store
    ref: str
    commit: CommitView

    def find(self, name: NodeHash) -> Node | None:
        """Give the node *name* if it is there.

        Raises:
            StoreDamaged: it is there, but cannot be read or is not what its name says.
        """
        objects = self.store.objects
        try:
            return find_node(objects, find_entry(objects, self.commit, NODES), name)
        except StoreDamaged:
            # Where the folder is damaged, and nobody knows what was in it, the node is not.
            if not self.lists(name):
                return None
            raise

    def lists(self, name: NodeHash) -> bool:
        """Tell whether the node *name* should be there, whatever state it is in."""
        objects = self.store.objects
        try:
            found = find_names(objects, find_entry(objects, self.commit, NODES), name)
            return any(True for _name in found)
        except StoreDamaged:
            return False


class NodeLookup:
    """The nodes of one store, for as long as one command runs."""

    def __init__(self, store: Store) -> None:
        self._opened: list[Keeper] = []
        self._unopened = _open_keepers(store)
        self._types: dict[NodeHash, Node] = {}

    def find(self, name: NodeHash) -> Node | None:
        """Give the node *name*; the built-in ones are always there.

        Raises:
            StoreDamaged: it is there, but no ref has it whole.
        """
        builtin = BUILTIN.get(name)
        if builtin is not None:
            return builtin
        damage: StoreDamaged | None = None
        for keeper in self.keepers():
            try:
                node = keeper.find(name)
            except StoreDamaged as error:
                # Another ref may have it whole.
                damage = damage or error
                continue
            if node is not None:
                self._opened.remove(keeper)
                self._opened.insert(0, keeper)
                return node
        if damage is not None:
            raise damage
        return None

    def get(self, name: NodeHash) -> Node:
        """Give the node *name*; the built-in ones are always there.

        Raises:
            NoSuchNode: no ref keeps it.
            StoreDamaged: it is there, but no ref has it whole.
        """
        node = self.find(name)
        if node is None:
            raise NoSuchNode(name)
        return node

    def get_type(self, name: NodeHash) -> Node:
        """Give the node *name* and remember it: types are few, and asked for again and again.

        Raises:
            NoSuchNode, StoreDamaged: as ``get``.
        """
        known = self._types.get(name)
        if known is None:
            known = self._types[name] = self.get(name)
        return known

    def list_references(self, node: Node) -> list[NodeHash]:
        """List what *node* points at: its type, then the references in its payload.

        Without its type nobody can tell what in the payload is a reference.

        Raises:
            StoreDamaged: its type is there, but no ref has it whole.
        """
        try:
            return direct_references(node, self.get_type)
        except NoSuchNode:
            return [node.type]

    def keepers(self) -> Iterator[Keeper]:
        """Give every ref that keeps nodes, opening those that were not needed before."""
        yield from list(self._opened)
        for keeper in self._unopened:
            self._opened.append(keeper)
            yield keeper


def open_keeper(store: Store, ref: str) -> Keeper | None:
    """Open *ref*; None if there is none, or it is damaged."""
    try:
        oid = store.refs.find(ref)
        return None if oid is None else Keeper(store, ref, read_commit(store.objects, oid))
    except StoreDamaged:
        return None


def _open_keepers(store: Store) -> Iterator[Keeper]:
    for ref in _refs(store):
        keeper = open_keeper(store, ref)
        if keeper is not None:
            yield keeper


def _refs(store: Store) -> Iterator[str]:
    yield NODES_REF
    for prefix in (WORKFLOWS, ACTIVE, ARCHIVE):
        # The newest thread has the greatest id.
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name
