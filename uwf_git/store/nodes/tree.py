"""The `nodes/` folder of a commit: find nodes in it, and add nodes to it.

A name that is there keeps its first blob, and never gets a second payload. Two levels of one
character keep the trees small (1,000 steps of 1 KB: flat 33 KB a step and growing, two levels
3.4 KB).
Format: FORMAT.md, "The tree of a thread commit".
"""

import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.store.nodes.blob import JSON_SUFFIX, TEXT_SUFFIX, decode_node, encode_node
from uwf_git.store.nodes.raw_tree import build_tree, put_entry, read_entries
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree

NODES = "nodes"
"""The name of the folder in the tree of a commit."""

FILE_MODE = stat.S_IFREG | 0o644
TREE_MODE = stat.S_IFDIR


class MissingNode(StoreDamaged):
    """A node is missing from the thread that references it."""

    code = "missing-node"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is missing from the thread that points at it",
            hint=GIVEN_BACK,
            node=name,
        )


def node_collision(name: NodeHash) -> StoreDamaged:
    """Say that two payloads have the same 64-bit name."""
    return StoreDamaged(
        f"node {name} is there already with another payload",
        code="node-collision",
        hint="change the content by a word and try again; the store is unchanged",
        node=name,
    )


def find_node(objects: ObjectStore, nodes: ObjectID | None, name: NodeHash) -> Node | None:
    """Return the node *name* from the folder *nodes*, checked; None if it is not there.

    For single nodes: the object store caches the trees. `NodeFolders.find` is for whole walks.

    Raises:
        DamagedNode: its content does not match its name.
    """
    oid = None if nodes is None else find_blob(objects, nodes, name)
    return None if oid is None else decode_node(name, get_blob(objects, oid))


def find_names(objects: ObjectStore, nodes: ObjectID | None, prefix: str) -> Iterator[NodeHash]:
    """List the names in the folder *nodes* that begin with *prefix*, in order."""
    for first, second, leaf in _leaves(objects, nodes, prefix[:1], prefix[1:2]):
        for entry in leaf.items():
            name = first + second + entry.path.decode(errors="replace").rpartition(".")[0]
            if name.startswith(prefix) and is_node_hash(name):
                yield NodeHash(name)


def _leaves(
    objects: ObjectStore, nodes: ObjectID | None, first: str, second: str
) -> Iterator[tuple[str, str, Tree]]:
    if nodes is None:
        return
    for outer in get_tree(objects, nodes).items():
        outer_name = outer.path.decode(errors="replace")
        if not outer_name.startswith(first):
            continue
        for inner in get_tree(objects, outer.sha).items():
            inner_name = inner.path.decode(errors="replace")
            if inner_name.startswith(second):
                yield outer_name, inner_name, get_tree(objects, inner.sha)


def find_blob(objects: ObjectStore, nodes: ObjectID, name: NodeHash) -> ObjectID | None:
    """Return the blob of the node *name* in the folder *nodes*; None if it is not there."""
    tree = get_tree(objects, nodes)
    for part in (name[0], name[1]):
        key = part.encode()
        if key not in tree:
            return None
        tree = get_tree(objects, tree[key][1])
    return _find_in_leaf(tree, name)


def _find_in_leaf(leaf: Tree, name: NodeHash) -> ObjectID | None:
    for suffix in (JSON_SUFFIX, TEXT_SUFFIX):
        key = (name[2:] + suffix).encode()
        if key in leaf:
            return leaf[key][1]
    return None


class _Folder(NamedTuple):
    """A folder that gets more entries."""

    oid: ObjectID | None
    before: Tree
    entries: list[bytes]

    def find(self, name: str) -> ObjectID | None:
        """Return the folder *name* that was in it before."""
        key = name.encode()
        return self.before[key][1] if key in self.before else None


class GrownFolder:
    """A `nodes/` folder with nodes added to it, and the git objects to write for it."""

    __slots__ = ("blobs", "nodes", "objects", "outgrown")

    nodes: ObjectID
    """The folder; set when it is whole."""

    def __init__(self) -> None:
        self.objects: list[ShaFile] = []
        # The blob of each added node, whether or not it was there before.
        self.blobs: dict[NodeHash, ObjectID] = {}
        # The folders in whose place larger ones have come.
        self.outgrown: set[ObjectID] = set()

    def open(self, objects: ObjectStore, folder: ObjectID | None) -> _Folder:
        """Return a folder to put entries into; None is an empty one."""
        if folder is None:
            return _Folder(None, Tree(), [])
        return _Folder(folder, get_tree(objects, folder), read_entries(objects, folder))

    def make(self, folder: _Folder) -> ObjectID:
        """Return the id of the folder with what was put into it."""
        tree = build_tree(folder.entries)
        if folder.oid is None:
            self.objects.append(tree)
        elif tree.id != folder.oid:
            self.objects.append(tree)
            self.outgrown.add(folder.oid)
        return tree.id


def add_nodes(objects: ObjectStore, nodes: ObjectID | None, added: Iterable[Node]) -> GrownFolder:
    """Build the folder *nodes* (None is empty) with *added* in it; write nothing.

    Raises:
        StoreDamaged: one of the names is there with another payload.
        DamagedNode: the content of a node that is there does not match its name.
    """
    growth = GrownFolder()
    root = growth.open(objects, nodes)
    by_place: dict[str, dict[str, list[Node]]] = {}
    for node in added:
        by_place.setdefault(node.hash[0], {}).setdefault(node.hash[1], []).append(node)
    for first, inner in by_place.items():
        middle = growth.open(objects, root.find(first))
        for second, group in inner.items():
            leaf = growth.open(objects, middle.find(second))
            for node in group:
                _add_to_leaf(objects, leaf, node, growth)
            put_entry(middle.entries, TREE_MODE, second.encode(), growth.make(leaf))
        put_entry(root.entries, TREE_MODE, first.encode(), growth.make(middle))
    growth.nodes = growth.make(root)
    return growth


def _add_to_leaf(objects: ObjectStore, leaf: _Folder, node: Node, growth: GrownFolder) -> None:
    present = growth.blobs.get(node.hash) or _find_in_leaf(leaf.before, node.hash)
    if present is None:
        suffix, content = encode_node(node)
        blob = Blob.from_string(content)
        put_entry(leaf.entries, FILE_MODE, (node.hash[2:] + suffix).encode(), blob.id)
        growth.objects.append(blob)
        present = blob.id
    elif node.hash not in growth.blobs:
        _check_same(decode_node(node.hash, get_blob(objects, present)), node)
    growth.blobs[node.hash] = present


def _check_same(kept: Node, node: Node) -> None:
    if (kept.type, kept.payload) != (node.type, node.payload):
        raise node_collision(node.hash)
