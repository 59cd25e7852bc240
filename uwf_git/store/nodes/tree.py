"""The `nodes/` folder of a commit: find nodes in it, and add nodes to it.

A name that is there keeps its first blob, and never gets a second payload. Two levels of one
character keep the trees small (1,000 steps of 1 KB: flat 33 KB a step and growing, two levels
3.4 KB).
Format: FORMAT.md, "The tree of a thread commit".
"""

import re
import stat
from collections.abc import Iterable, Iterator

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.store.nodes.blob import JSON_SUFFIX, TEXT_SUFFIX, decode_node, encode_node
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree

NODES = "nodes"
"""The name of the folder in the tree of a commit."""

FILE_MODE = stat.S_IFREG | 0o644
TREE_MODE = stat.S_IFDIR

_TREE_MODE = b"%o" % TREE_MODE
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0.{20}", re.DOTALL)


class MissingNode(StoreDamaged):
    """A node is missing from the thread that references it."""

    code = "missing-node"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is missing from the thread that points at it",
            hint=GIVEN_BACK,
            node=name,
        )


class NodeCollision(StoreDamaged):
    """Two payloads have the same 64-bit name."""

    code = "node-collision"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is there already with another payload",
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


class GrownFolder:
    """A `nodes/` folder with nodes added to it, and the git objects to write for it."""

    __slots__ = ("blobs", "nodes", "objects")

    def __init__(self, nodes: ObjectID) -> None:
        self.nodes = nodes
        self.objects: list[ShaFile] = []
        # The blob of each added node, whether or not it was there before.
        self.blobs: dict[NodeHash, ObjectID] = {}


def add_nodes(objects: ObjectStore, nodes: ObjectID | None, added: Iterable[Node]) -> GrownFolder:
    """Build the folder *nodes* (None is empty) with *added* in it; write nothing.

    Raises:
        NodeCollision: one of the names is there with another payload.
        DamagedNode: the content of a node that is there does not match its name.
    """
    root = _get_folder(objects, nodes)
    growth = GrownFolder(root.id)
    by_place: dict[str, dict[str, list[Node]]] = {}
    for node in added:
        by_place.setdefault(node.hash[0], {}).setdefault(node.hash[1], []).append(node)
    grown_root = root.as_raw_string()
    for first, inner in by_place.items():
        middle = _get_folder(objects, _find(root, first.encode()))
        grown_middle = middle.as_raw_string()
        for second, group in inner.items():
            leaf = _get_folder(objects, _find(middle, second.encode()))
            grown_leaf = leaf.as_raw_string()
            for node in group:
                grown_leaf = _add_to_leaf(objects, leaf, grown_leaf, node, growth)
            grown_middle = _put(grown_middle, TREE_MODE, second, _make(grown_leaf, growth))
        grown_root = _put(grown_root, TREE_MODE, first, _make(grown_middle, growth))
    growth.nodes = _make(grown_root, growth)
    return growth


def _add_to_leaf(
    objects: ObjectStore, leaf: Tree, grown: bytes, node: Node, growth: GrownFolder
) -> bytes:
    present = growth.blobs.get(node.hash) or _find_in_leaf(leaf, node.hash)
    if present is None:
        suffix, content = encode_node(node)
        blob = Blob.from_string(content)
        grown = _put(grown, FILE_MODE, node.hash[2:] + suffix, blob.id)
        growth.objects.append(blob)
        present = blob.id
    elif node.hash not in growth.blobs:
        _check_same(decode_node(node.hash, get_blob(objects, present)), node)
    growth.blobs[node.hash] = present
    return grown


def _check_same(kept: Node, node: Node) -> None:
    if (kept.type, kept.payload) != (node.type, node.payload):
        raise NodeCollision(node.hash)


def _get_folder(objects: ObjectStore, oid: ObjectID | None) -> Tree:
    return Tree() if oid is None else get_tree(objects, oid)


def _find(tree: Tree, name: bytes) -> ObjectID | None:
    return tree[name][1] if name in tree else None


def _make(content: bytes, growth: GrownFolder) -> ObjectID:
    tree = _RawTree.from_string(content)
    growth.objects.append(tree)
    return tree.id


class _RawTree(ShaFile):
    """A tree that is only written: dulwich's Tree is parsed when it is made."""

    type_name, type_num = Tree.type_name, Tree.type_num

    def _deserialize(self, chunks: list[bytes]) -> None:
        """Keep the raw chunks alone."""


def _put(content: bytes, mode: int, name: str, oid: ObjectID) -> bytes:
    """Return a raw tree with an entry added or changed.

    dulwich would copy, sort and write all entries, which are more in a deeper thread.
    """
    key, start, end = name.encode(), len(content), len(content)
    order = _order(b"%o" % mode, key)
    for found in _ENTRY.finditer(content):
        if _order(found[1], found[2]) >= order:
            start = found.start()
            end = found.end() if found[2] == key else start
            break
    entry = b"%o %s\0%s" % (mode, key, bytes.fromhex(oid.decode()))
    return content[:start] + entry + content[end:]


def _order(mode: bytes, name: bytes) -> bytes:
    """Return the key by which git sorts the entries of a tree."""
    return name + b"/" if mode == _TREE_MODE else name
