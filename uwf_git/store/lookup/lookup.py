"""Node lookup: find a node by the refs that the index names first, else by all root refs."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.names import NodeHash, is_node_hash
from uwf_git.model.node import Node
from uwf_git.model.references import direct_references
from uwf_git.store.lookup.roots import NodeRoot, list_root_refs, open_roots
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.store.lookup.index import NodeIndex

# Do not check whether each match still exists if there are more: the prefix is ambiguous anyway.
_MOST_CHECKED = 32

# How many refs stay open: a commit takes a kilobyte, and there may be hundreds of thousands.
_MOST_OPEN = 1000


class NoSuchNode(Refused):
    code = "no-such-node"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no node {text} in this store",
            hint="`uwf thread show ID --full` and `uwf workflow show NAME` name nodes",
            node=text,
        )


def ambiguous_node(text: str, matches: list[NodeHash]) -> Refused:
    return Refused(
        f"{len(matches)} nodes begin with {text}: {name_some(matches)}",
        code="ambiguous-node",
        hint="give more of the hash",
        matches=matches,
    )


class NodeLookup:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: dict[str, tuple[NodeRoot, ...]] = {}
        # A walk from node to node stays in one thread: search the root of the last node first.
        self._last: tuple[NodeRoot, ...] = ()
        self._types: dict[NodeHash, Node] = {}

    def find(self, name: NodeHash) -> Node | None:
        """Return the node *name*, or None; built-in nodes are always found."""
        builtin = BUILTIN.get(name)
        if builtin is not None:
            return builtin
        damage: list[StoreDamaged] = []
        node = self._find_in(self._last, name, damage) or self._find_anywhere(name, damage)
        if node is None and damage:
            raise damage[0]
        return node

    def get(self, name: NodeHash) -> Node:
        """Return the node *name* as ``find`` does."""
        node = self.find(name)
        if node is None:
            raise NoSuchNode(name)
        return node

    def get_type(self, name: NodeHash) -> Node:
        """Return the node *name* and remember it: types are few, and used again and again."""
        known = self._types.get(name)
        if known is None:
            known = self._types[name] = self.get(name)
        return known

    def list_references(self, node: Node) -> list[NodeHash]:
        """List the references of *node*: its type, then those in its payload.

        If the type is missing, list the type alone: it defines which fields are references.
        """
        try:
            return direct_references(node, self.get_type)
        except NoSuchNode:
            return [node.type]

    def resolve(self, prefix: str) -> NodeHash:
        """Return the name of the node that begins with *prefix*; a full name is not looked up."""
        if is_node_hash(prefix):
            return NodeHash(prefix)
        matches = {name for name in BUILTIN if name.startswith(prefix)}
        matches.update(self._list_names(prefix))
        if not matches:
            raise NoSuchNode(prefix)
        if len(matches) > 1:
            raise ambiguous_node(prefix, sorted(matches))
        return matches.pop()

    def roots(self) -> Iterator[NodeRoot]:
        yield from self._open(self._refs)

    @cached_property
    def _refs(self) -> list[str]:
        return list(list_root_refs(self._store))

    @cached_property
    def _index(self) -> "NodeIndex":
        # SQLite is only loaded for nodes that are not built in.
        from uwf_git.store.lookup.index import NodeIndex  # noqa: PLC0415 - start-up time

        return NodeIndex(self._store)

    def _find_anywhere(self, name: NodeHash, damage: list[StoreDamaged]) -> Node | None:
        advice = self._index.advise(name)
        node = self._find_in(self._open(advice.refs), name, damage)
        if node is not None or advice.is_all:
            return node
        # There is no index, or its ref is gone or damaged.
        node = self._find_in(self.roots(), name, damage)
        if node is not None:
            self._index.learn(name, self._last[0].ref)
        elif not damage:
            self._index.forget(name)
        return node

    def _find_in(
        self, roots: Iterable[NodeRoot], name: NodeHash, damage: list[StoreDamaged]
    ) -> Node | None:
        for root in roots:
            try:
                node = root.find(name)
            except StoreDamaged as error:
                # Another root may have it undamaged; if none has, the first error is raised.
                damage[:] = damage or [error]
                continue
            if node is not None:
                self._last = (root,)
                return node
        return None

    def _list_names(self, prefix: str) -> Iterator[NodeHash]:
        known = self._index.list_names(prefix)
        roots = self.roots() if known is None else self._open(known.refs)
        for root in roots:
            yield from root.list_readable(prefix)
        if known is not None:
            is_checked = len(known.names) <= _MOST_CHECKED
            yield from filter(self._is_kept, known.names) if is_checked else known.names

    def _is_kept(self, name: NodeHash) -> bool:
        try:
            return self.find(name) is not None
        except StoreDamaged:
            return True

    def _open(self, refs: Iterable[str]) -> Iterator[NodeRoot]:
        for ref in refs:
            roots = self._opened.get(ref)
            if roots is None:
                roots = tuple(open_roots(self._store, ref))
                if len(self._opened) < _MOST_OPEN:
                    self._opened[ref] = roots
            yield from roots
