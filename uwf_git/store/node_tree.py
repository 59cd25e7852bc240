"""Node trees: the `nodes/` folder of a commit.

Owns: where in the folder a node's blob lies, finding it, and adding more.
Knows nothing of: what the nodes are, which commit the folder belongs to.
Always true: two levels of one character keep every tree small (measured over 1,000 steps of
1 KB: flat 33 KB a step and growing, two levels 3.4 KB); a name that is there already keeps its
first blob, and one name never gets two payloads.
Format: FORMAT.md, "The tree of a thread commit".
"""

import stat
from collections.abc import Iterable, Iterator

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.store.node_blob import JSON_SUFFIX, TEXT_SUFFIX, decode_node, encode_node
from uwf_git.store.objects import DamagedObject, ObjectStore

FILE_MODE = stat.S_IFREG | 0o644
TREE_MODE = stat.S_IFDIR


class MissingNode(StoreDamaged):
    """A node that something points at is not where it must be."""

    code = "missing-node"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is missing from the thread that points at it",
            hint=GIVEN_BACK,
            node=name,
        )


class NodeCollision(StoreDamaged):
    """Two contents have one name. 64 bits are few; guessing which is meant would be worse."""

    code = "node-collision"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is there already with another payload",
            hint="change the content by a word and try again; the store is as it was",
            node=name,
        )


def get_tree(objects: ObjectStore, oid: ObjectID) -> Tree:
    """Give the tree *oid*.

    Raises:
        DamagedObject: it is missing, or no tree.
    """
    try:
        tree = objects[oid]
    except KeyError:
        raise DamagedObject(oid, "is missing") from None
    if not isinstance(tree, Tree):
        raise DamagedObject(oid, "is not a tree")
    return tree


def get_blob(objects: ObjectStore, oid: ObjectID) -> bytes:
    """Give the content of the blob *oid*.

    Raises:
        DamagedObject: it is missing, or no blob.
    """
    try:
        kind, content = objects.get_raw(oid)
    except KeyError:
        raise DamagedObject(oid, "is missing") from None
    if kind != Blob.type_num:
        raise DamagedObject(oid, "is not a blob")
    return content


def find_node(objects: ObjectStore, nodes: ObjectID | None, name: NodeHash) -> Node | None:
    """Give the node *name* from the folder *nodes*, checked, or None if it is not there.

    Raises:
        DamagedNode: it is not what its name says.
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


class Growth:
    """A `nodes/` folder after nodes were added, and the git objects that this takes."""

    __slots__ = ("blobs", "nodes", "objects")

    def __init__(self, nodes: ObjectID) -> None:
        self.nodes = nodes
        self.objects: list[ShaFile] = []
        # The blob of each node that was to be added, whether or not it was there before.
        self.blobs: dict[NodeHash, ObjectID] = {}


def add_nodes(objects: ObjectStore, nodes: ObjectID | None, added: Iterable[Node]) -> Growth:
    """Build the folder *nodes* (None is empty) with *added* in it; nothing is written.

    Raises:
        NodeCollision: one of the names has another payload there.
        DamagedNode: a node that is there already is not what its name says.
    """
    root = Tree() if nodes is None else _copy(get_tree(objects, nodes))
    growth = Growth(root.id)
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


def _add_to_leaf(objects: ObjectStore, leaf: Tree, node: Node, growth: Growth) -> None:
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


def _attach(tree: Tree, name: str, child: Tree, growth: Growth) -> None:
    tree[name.encode()] = (TREE_MODE, child.id)
    growth.objects.append(child)
