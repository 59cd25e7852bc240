"""Looking nodes up, wherever in the store they are.

Owns: the one way to find a node without being told which ref keeps it.
Knows nothing of: how the index is kept (node_index.py), how a folder of nodes is laid out.
Always true: a node is found as long as any ref keeps it whole, and only then; one damaged ref
does not hide the nodes of all others. The index says where to look first, and every answer of
it is checked; where it has none, all refs are asked.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.closure import direct_references
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.store.keeper import Keeper, open_keepers
from uwf_git.store.keeping_refs import list_keeping_refs
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.store.node_index import NodeIndex

# More than so many nodes that begin alike are several, though some of them may be gone.
_MOST_CHECKED = 32

# Refs that stay open; a commit is a kilobyte, and there may be hundreds of thousands.
_MOST_OPEN = 1000


class NoSuchNode(Refused):
    """No ref of this store keeps such a node."""

    code = "no-such-node"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no node {text} in this store",
            hint="`uwf thread show ID --full` and `uwf workflow show NAME` name nodes",
            node=text,
        )


class AmbiguousNode(Refused):
    """Several nodes begin so."""

    code = "ambiguous-node"

    def __init__(self, text: str, matches: list[NodeHash]) -> None:
        super().__init__(
            f"{len(matches)} nodes begin with {text}: {name_some(matches)}",
            hint="give more of the hash",
            matches=matches,
        )


class NodeLookup:
    """The nodes of one store, for as long as one command runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: dict[str, tuple[Keeper, ...]] = {}
        # A walk from node to node stays in one thread: who gave the last node is asked first.
        self._last: tuple[Keeper, ...] = ()
        self._types: dict[NodeHash, Node] = {}

    def find(self, name: NodeHash) -> Node | None:
        """Give the node *name*; the built-in ones are always there.

        Raises:
            StoreDamaged: it is there, but no ref has it whole; or a folder that it might be in
                cannot be read, and it is nowhere else.
        """
        builtin = BUILTIN.get(name)
        if builtin is not None:
            return builtin
        damage: list[StoreDamaged] = []
        node = self._find_in(self._last, name, damage) or self._find_anywhere(name, damage)
        if node is None and damage:
            raise damage[0]
        return node

    def get(self, name: NodeHash) -> Node:
        """Give the node *name*; the built-in ones are always there.

        Raises:
            NoSuchNode: no ref keeps it.
            StoreDamaged: as ``find``.
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

    def resolve(self, prefix: str) -> NodeHash:
        """Find the node whose name begins with *prefix* (a whole name is given back as it is).

        Raises:
            NoSuchNode, AmbiguousNode: none or several begin so.
        """
        if is_node_hash(prefix):
            return NodeHash(prefix)
        matches = {name for name in BUILTIN if name.startswith(prefix)}
        matches.update(self._list_names(prefix))
        if not matches:
            raise NoSuchNode(prefix)
        if len(matches) > 1:
            raise AmbiguousNode(prefix, sorted(matches))
        return matches.pop()

    def keepers(self) -> Iterator[Keeper]:
        """Give everything that keeps nodes."""
        yield from self._open(self._refs)

    @cached_property
    def _refs(self) -> list[str]:
        return list(list_keeping_refs(self._store))

    @cached_property
    def _index(self) -> "NodeIndex":
        # SQLite is loaded by those alone who ask for a node that is not built in.
        from uwf_git.store.node_index import NodeIndex  # noqa: PLC0415 - start-up, as said above

        return NodeIndex(self._store)

    def _find_anywhere(self, name: NodeHash, damage: list[StoreDamaged]) -> Node | None:
        advice = self._index.advise(name)
        node = self._find_in(self._open(advice.refs), name, damage)
        if node is not None or advice.is_all:
            return node
        # There is no index, or that ref has gone, or what it has is damaged.
        node = self._find_in(self.keepers(), name, damage)
        if node is not None:
            self._index.learn(name, self._last[0].ref)
        elif not damage:
            self._index.forget(name)
        return node

    def _find_in(
        self, keepers: Iterable[Keeper], name: NodeHash, damage: list[StoreDamaged]
    ) -> Node | None:
        for keeper in keepers:
            try:
                node = keeper.find(name)
            except StoreDamaged as error:
                # Another may have it whole; if not, the first error is the one that is told.
                damage[:] = damage or [error]
                continue
            if node is not None:
                self._last = (keeper,)
                return node
        return None

    def _list_names(self, prefix: str) -> Iterator[NodeHash]:
        known = self._index.list_names(prefix)
        keepers = self.keepers() if known is None else self._open(known.refs)
        for keeper in keepers:
            yield from keeper.list_readable(prefix)
        if known is not None:
            is_checked = len(known.names) <= _MOST_CHECKED
            yield from filter(self._is_kept, known.names) if is_checked else known.names

    def _is_kept(self, name: NodeHash) -> bool:
        try:
            return self.find(name) is not None
        except StoreDamaged:
            return True

    def _open(self, refs: Iterable[str]) -> Iterator[Keeper]:
        for ref in refs:
            keepers = self._opened.get(ref)
            if keepers is None:
                keepers = tuple(open_keepers(self._store, ref))
                if len(self._opened) < _MOST_OPEN:
                    self._opened[ref] = keepers
            yield from keepers
