"""The `nodes/` folder of a commit: find nodes in it, and add nodes to it.

A name that is there keeps its first blob, and never gets a second payload. Two levels of one
character keep the trees small (1,000 steps of 1 KB: flat 33 KB a step and growing, two levels
3.4 KB).
Format: FORMAT.md, "The tree of a thread commit".
"""

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
    oid = None if nodes is None else _find_blob(objects, nodes, name)
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


def _find_blob(objects: ObjectStore, nodes: ObjectID, name: NodeHash) -> ObjectID | None:
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
    root = Tree() if nodes is None else _copy(get_tree(objects, nodes))
    growth = GrownFolder(root.id)
    by_place: dict[str, dict[str, list[Node]]] = {}
    for node in added:
        by_place.setdefault(node.hash[0], {}).setdefault(node.hash[1], []).append(node)
    for first, inner in by_place.items():
        middle = _child(objects, root, first)
        for second, group in inner.items():
            leaf = _child(objects, middle, second)
            for node in group:
                _add_to_leaf(objects, leaf, node, growth)
            _attach(middle, second, leaf, growth)
        _attach(root, first, middle, growth)
    growth.nodes = root.id
    growth.objects.append(root)
    return growth


def _add_to_leaf(objects: ObjectStore, leaf: Tree, node: Node, growth: GrownFolder) -> None:
    present = growth.blobs.get(node.hash) or _find_in_leaf(leaf, node.hash)
    if present is None:
        suffix, content = encode_node(node)
        blob = Blob.from_string(content)
        leaf[(node.hash[2:] + suffix).encode()] = (FILE_MODE, blob.id)
        growth.objects.append(blob)
        present = blob.id
    elif node.hash not in growth.blobs:
        _check_same(decode_node(node.hash, get_blob(objects, present)), node)
    growth.blobs[node.hash] = present


def _check_same(kept: Node, node: Node) -> None:
    if (kept.type, kept.payload) != (node.type, node.payload):
        raise NodeCollision(node.hash)


def _child(objects: ObjectStore, tree: Tree, name: str) -> Tree:
    key = name.encode()
    return _copy(get_tree(objects, tree[key][1])) if key in tree else Tree()


def _copy(tree: Tree) -> Tree:
    copy = Tree()
    for entry in tree.items():
        copy[entry.path] = (entry.mode, entry.sha)
    return copy


def _attach(tree: Tree, name: str, child: Tree, growth: GrownFolder) -> None:
    tree[name.encode()] = (TREE_MODE, child.id)
    growth.objects.append(child)
