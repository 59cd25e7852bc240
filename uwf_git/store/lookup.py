"""Node lookup: find a node by the refs that the index names first, else by all root refs."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from dulwich.objects import ObjectID, Tree

from uwf_git.errors import Conflict, Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN, direct_references
from uwf_git.model.names import NodeHash, Oid, is_node_hash
from uwf_git.model.node import Node
from uwf_git.model.thread import FORMAT
from uwf_git.store.locks import PACKED_REFS
from uwf_git.store.nodes import NODES, TREE_MODE, add_nodes, find_names, find_node
from uwf_git.store.objects.commit import (
    CommitDraft,
    CommitView,
    Signing,
    build_message,
    find_entry,
    read_commit,
    write_commit,
)
from uwf_git.store.refs import PackedRefs, list_packed_refs, read_loose_refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows import WORKFLOWS

if TYPE_CHECKING:
    from uwf_git.store.index import NodeIndex

# refs/cas/nodes: nodes that were put by hand, kept from git's gc by a tree (FORMAT.md, "Refs").

CAS = "refs/cas/"
NODES_REF = f"{CAS}nodes"

_MOST_TRIES = 20


def put_nodes(store: Store, nodes: Iterable[Node], signing: Signing) -> bool:
    """Add *nodes* and the built-in schemas to refs/cas/nodes; return whether any was new."""
    nodes = list(nodes)
    added = [*BUILTIN.values(), *nodes]
    for _try in range(_MOST_TRIES):
        seen = store.refs.find(NODES_REF)
        parent = None if seen is None else read_commit(store.objects, seen)
        folder = None if parent is None else find_entry(store.objects, parent, NODES)
        growth = add_nodes(store.objects, folder, added)
        if growth.nodes == folder:
            return False
        tree = Tree()
        tree[NODES.encode()] = (TREE_MODE, growth.nodes)
        written = {each.id for each in growth.objects}
        new = [name for name, blob in growth.blobs.items() if blob in written]
        draft = CommitDraft(
            tree=tree,
            parents=() if parent is None else (parent,),
            message=build_put_message(new),
            objects=growth.objects,
        )
        if _move(store, seen, write_commit(store.objects, draft, signing)):
            return True
    raise Conflict(
        "other processes kept putting nodes at the same time", code="nodes-moved", hint="try again"
    )


def build_put_message(new: Iterable[NodeHash]) -> bytes:
    names = " ".join(sorted(name for name in new if name not in BUILTIN))
    trailers = [("Uwf-Event", "put"), ("Uwf-Format", str(FORMAT))]
    return build_message("cas", f"put {names or 'the built-in schemas'}", trailers=trailers)


def list_nodes(store: Store) -> Iterator[NodeHash]:
    """List the nodes at refs/cas/nodes, the built-in schemas included."""
    seen = store.refs.find(NODES_REF)
    if seen is not None:
        folder = find_entry(store.objects, read_commit(store.objects, seen), NODES)
        yield from find_names(store.objects, folder, "")


def _move(store: Store, seen: Oid | None, to: Oid) -> bool:
    if seen is None:
        return store.refs.create(NODES_REF, to)
    return store.refs.advance(NODES_REF, seen=seen, to=to)


# Node roots: the refs and commits that keep nodes.

# Node roots: commits whose trees keep nodes, and finding a node in one.
#
# The tip of a thread, an archive or refs/cas/nodes keeps all its nodes; of a workflow each
# version keeps its own. A damaged root is skipped, so that it does not hide the nodes of others.


class NodeRoot(NamedTuple):
    store: Store
    ref: str
    commit: CommitView

    def find(self, name: NodeHash) -> Node | None:
        nodes = self._folder()
        return None if nodes is None else find_node(self.store.objects, nodes, name)

    def names(self, prefix: str) -> Iterator[NodeHash]:
        """List the names that begin with *prefix*; their blobs are not read."""
        yield from find_names(self.store.objects, self._folder(), prefix)

    def lists(self, name: NodeHash) -> bool:
        return any(True for _name in self.list_readable(name))

    def list_readable(self, prefix: str) -> Iterator[NodeHash]:
        with suppress(StoreDamaged):
            yield from self.names(prefix)

    def _folder(self) -> ObjectID | None:
        with suppress(StoreDamaged):
            return find_entry(self.store.objects, self.commit, NODES)
        # The tree is damaged; `uwf verify` reports it.
        return None


def open_root(store: Store, ref: str) -> NodeRoot | None:
    with suppress(StoreDamaged):
        oid = store.refs.find(ref)
        return None if oid is None else NodeRoot(store, ref, read_commit(store.objects, oid))
    return None


def open_roots(store: Store, ref: str) -> Iterator[NodeRoot]:
    """Yield the roots of *ref*, newest first, up to the first root that cannot be read."""
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


# Root refs: the refs that keep nodes, and reading many of them at once.
#
# Read loose refs before packed ones: a ref that git packs in between is then seen twice, not
# missed. A ref that holds no object id is left out. Source: gitrepository-layout(5),
# git-pack-refs(1).

_BELOW = (WORKFLOWS, ACTIVE, ARCHIVE)


def list_root_refs(store: Store) -> Iterator[str]:
    """List the refs that keep nodes, in the order in which they are searched."""
    yield NODES_REF
    for prefix in _BELOW:
        # The newest thread has the greatest id (a ULID).
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name


def list_loose_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the loose root refs and their values, in the order of `list_root_refs`."""
    for prefix in (CAS, *_BELOW):
        for name, oid in sorted(read_loose_refs(store.path, prefix).items(), reverse=True):
            if oid is not None and is_root_ref(prefix + name):
                yield prefix + name, oid


def list_packed_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the packed root refs and their values, the newest threads first."""
    PackedRefs(os.path.join(store.path, PACKED_REFS))
    for ref, oid in reversed(list(list_packed_refs(store.path, "refs/"))):
        if is_root_ref(ref):
            yield ref, oid


def is_root_ref(ref: str) -> bool:
    if "\0" in ref or "/../" in ref:
        return False
    return ref.startswith(_BELOW) or ref == NODES_REF


def follow(ref: str) -> tuple[str, ...]:
    """Return the refs that have the nodes of *ref*: for an active thread also its archive."""
    if ref.startswith(ACTIVE):
        return ref, ARCHIVE + ref.removeprefix(ACTIVE)
    return (ref,)


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
        # Types are few, and used again and again.
        self.get_type = cache(self.get)

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

    def list_references(self, node: Node) -> list[NodeHash]:
        """List the references of *node*: its type, then those in its payload.

        If the type is missing, list the type alone: it defines which fields are references.
        """
        with suppress(NoSuchNode):
            return direct_references(node, self.get_type)
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
        from uwf_git.store.index import NodeIndex  # noqa: PLC0415 - start-up time

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
        with suppress(StoreDamaged):
            return self.find(name) is not None
        return True

    def _open(self, refs: Iterable[str]) -> Iterator[NodeRoot]:
        for ref in refs:
            roots = self._opened.get(ref)
            if roots is None:
                roots = tuple(open_roots(self._store, ref))
                if len(self._opened) < _MOST_OPEN:
                    self._opened[ref] = roots
            yield from roots
