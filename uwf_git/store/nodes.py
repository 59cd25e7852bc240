"""The `nodes/` folder of a commit: find nodes in it, add nodes to it, unite several."""

import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.builtin import BUILTIN, META, TEXT, TYPES
from uwf_git.model.names import NodeHash, is_node_hash
from uwf_git.model.node import Node, NotCanonical, build_node, canonical, canonical_hash
from uwf_git.model.plain_schema import plain_check
from uwf_git.model.workflow import FrozenDict
from uwf_git.store.objects.commit import decode_json, encode_json, find_in_tree
from uwf_git.store.objects.objects import ObjectStore, damaged_object, get_blob, get_tree
from uwf_git.store.objects.pack_file import ByteCache

# Node blobs: a node as a git blob, in JSON or text form, reversible (FORMAT.md, "Node files").

JSON_SUFFIX = ".json"
TEXT_SUFFIX = ".md"

# Matched as bytes: FACTS 2 has texts that break YAML parsers and splitlines.
_TEXT_HEADER = re.compile(
    rb"\A---\ntype: ([0-9A-F][0-9A-HJKMNP-TV-Z]{12})\ntimestamp: (0|[1-9][0-9]{0,15})\n---\n"
)
_FIELDS = {"type", "payload", "timestamp"}
_LATEST = 10**16
_SHAPED = {name: plain_check(node.payload) for name, node in TYPES.items() if name != META}


class DamagedNode(StoreDamaged):
    code = "damaged-node"

    def __init__(self, name: NodeHash, problem: str) -> None:
        super().__init__(f"node {name} {problem}", hint=GIVEN_BACK, node=name)


# Payloads that nobody can change, by their identities, with what they were encoded to.
_ENCODED: ByteCache[tuple[int, int], tuple[Node, tuple[str, bytes]]] = ByteCache(2**21)


def encode_node(node: Node) -> tuple[str, bytes]:
    known = BUILTIN.get(node.hash)
    is_builtin = known is not None and known.payload is node.payload
    if not (is_builtin or isinstance(node.payload, FrozenDict)):
        return _encode(node)
    # What is held keeps its identity; a name can be forged.
    key = (id(node.payload), node.timestamp)
    held = _ENCODED.get(key)
    if held is None or held[0].payload is not node.payload or held[0].type != node.type:
        held = node, _encode(node)
        _ENCODED.put(key, held, len(held[1][1]))
    return held[1]


def _encode(node: Node) -> tuple[str, bytes]:
    if node.type == TEXT and isinstance(node.payload, str):
        header = f"---\ntype: {node.type}\ntimestamp: {node.timestamp}\n---\n"
        return TEXT_SUFFIX, header.encode() + node.payload.encode()
    document = {"type": node.type, "payload": node.payload, "timestamp": node.timestamp}
    return JSON_SUFFIX, encode_json(document)


def decode_node(name: NodeHash, content: bytes) -> Node:
    try:
        type_hash, written, timestamp = _parse(content)
        payload = canonical(written)
        actual = canonical_hash(None if type_hash == name else type_hash, payload)
    except (ValueError, NotCanonical) as error:
        raise DamagedNode(name, f"cannot be read: {error}") from error
    if actual != name:
        raise DamagedNode(name, f"holds other content: its name would be {actual}")
    return check_node(Node(name, type_hash, payload, timestamp))


def decode_strictly(name: NodeHash, content: bytes) -> Node:
    """Read a node as ``decode_node`` does, but in no other bytes than uwf writes."""
    node = decode_node(name, content)
    if encode_node(node)[1] != content:
        raise DamagedNode(name, "is not written as uwf writes it")
    return node


def check_node(node: Node) -> Node:
    """Return *node* if its payload has the fields of its built-in type.

    A push can call any payload a StepNode, and the readers of StepNodes rely on the fields.
    """
    own = TYPES.get(node.hash)
    if own is not None and (node.type, node.payload) != (own.type, own.payload):
        raise DamagedNode(node.hash, "has the name of a schema of uwf, and is another")
    has_its_shape = _SHAPED.get(node.type)
    if has_its_shape is not None and not has_its_shape(node.payload):
        title = TYPES[node.type].payload["title"]
        raise DamagedNode(node.hash, f"says that it is a {title}, and is not")
    return node


def identify_node(content: bytes) -> Node:
    """Read a node blob without knowing its name; compute the name from the content."""
    type_hash, payload, timestamp = _parse(content)
    try:
        return check_node(build_node(type_hash, payload, timestamp=timestamp))
    except (DamagedNode, NotCanonical) as error:
        raise ValueError(str(error)) from error


def _parse(content: bytes) -> tuple[NodeHash, Any, int]:
    header = _TEXT_HEADER.match(content)
    if header is not None:
        return NodeHash(header[1].decode()), content[header.end() :].decode(), int(header[2])
    document = decode_json(content)
    if not isinstance(document, dict) or document.keys() != _FIELDS:
        raise ValueError("it is not an object of type, payload and timestamp")
    type_hash, timestamp = document["type"], document["timestamp"]
    if not isinstance(type_hash, str) or not is_node_hash(type_hash):
        raise ValueError("its type is not a node hash")
    if type(timestamp) is not int or not 0 <= timestamp < _LATEST:
        raise ValueError("its timestamp is not a natural number of at most 16 digits")
    return NodeHash(type_hash), document["payload"], timestamp


# Trees of git as lists of raw entries: what is written at each step is not parsed and copied.
#
# dulwich would parse, sort and format every entry, and a folder of a deep thread has many.

_TREE_MODE = b"40000"
_ENTRY = re.compile(rb"[0-7]+ [^\0]+\0.{20}", re.DOTALL)


class RawTree(ShaFile):
    """A tree that is only written: dulwich's Tree is parsed when it is made."""

    type_name, type_num = Tree.type_name, Tree.type_num

    def _deserialize(self, chunks: list[bytes]) -> None:
        """Keep the raw chunks alone."""


def read_entries(objects: ObjectStore, oid: ObjectID) -> list[bytes]:
    # The object store keeps trees, and not what they are made of.
    entries: list[bytes] = _ENTRY.findall(get_tree(objects, oid).as_raw_string())
    return entries


def build_tree(entries: list[bytes]) -> RawTree:
    return RawTree.from_string(b"".join(entries))


def parse_entry(entry: bytes) -> tuple[bytes, int, ObjectID]:
    # No mode and no name holds the byte 0.
    head, _, raw = entry.partition(b"\0")
    mode, _, name = head.partition(b" ")
    return name, int(mode, 8), ObjectID(raw.hex().encode())


def put_entry(entries: list[bytes], mode: int, name: bytes, oid: ObjectID) -> None:
    entry = b"%o %s\0%s" % (mode, name, bytes.fromhex(oid.decode()))
    order = _order(entry)
    place = bisect_left(entries, order, key=_order)
    if _is_at(entries, place, order):
        entries[place] = entry
        return
    # A file and a folder of one name have different places.
    other = name + b"/" if order == name else name
    old = bisect_left(entries, other, key=_order)
    if _is_at(entries, old, other):
        del entries[old]
        place -= old < place
    entries.insert(place, entry)


def _is_at(entries: list[bytes], place: int, order: bytes) -> bool:
    return place < len(entries) and _order(entries[place]) == order


def _order(entry: bytes) -> bytes:
    mode, _, name = entry.partition(b"\0")[0].partition(b" ")
    return name + b"/" if mode == _TREE_MODE else name


# The `nodes/` folder of a commit: find nodes in it, and add nodes to it.
#
# A name that is there keeps its first blob, and never gets a second payload. Two levels of one
# character keep the trees small (1,000 steps of 1 KB: flat 33 KB a step and growing, two levels
# 3.4 KB). Format: FORMAT.md, "The tree of a thread commit".

NODES = "nodes"

FILE_MODE = stat.S_IFREG | 0o644
TREE_MODE = stat.S_IFDIR


class MissingNode(StoreDamaged):
    code = "missing-node"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is missing from the thread that points at it", hint=GIVEN_BACK, node=name
        )


class NodeCollision(StoreDamaged):
    code = "node-collision"

    def __init__(self, name: NodeHash) -> None:
        super().__init__(
            f"node {name} is there already with another payload",
            hint="change the content by a word and try again; the store is unchanged",
            node=name,
        )


def find_node(
    objects: ObjectStore,
    nodes: ObjectID | None,
    name: NodeHash,
    decode: Callable[[NodeHash, bytes], Node] = decode_node,
) -> Node | None:
    """Return the node *name*, checked, or None; for single nodes, unlike `NodeFolders.find`."""
    oid = None if nodes is None else find_blob(objects, nodes, name)
    return None if oid is None else decode(name, get_blob(objects, oid))


def get_node(objects: ObjectStore, nodes: ObjectID | None, name: NodeHash) -> Node:
    node = find_node(objects, nodes, name)
    if node is None:
        raise MissingNode(name)
    return node


def find_names(objects: ObjectStore, nodes: ObjectID | None, prefix: str) -> Iterator[NodeHash]:
    """List the names in the folder *nodes* that begin with *prefix*, in order."""
    if nodes is None:
        return
    for outer in get_tree(objects, nodes).items():
        first = outer.path.decode(errors="replace")
        if not first.startswith(prefix[:1]):
            continue
        for inner in get_tree(objects, outer.sha).items():
            second = inner.path.decode(errors="replace")
            if not second.startswith(prefix[1:2]):
                continue
            for entry in get_tree(objects, inner.sha).items():
                name = first + second + entry.path.decode(errors="replace").rpartition(".")[0]
                if name.startswith(prefix) and is_node_hash(name):
                    yield NodeHash(name)


def find_blob(objects: ObjectStore, nodes: ObjectID, name: NodeHash) -> ObjectID | None:
    """Return the blob of the node *name* in the folder *nodes*; None for a missing node."""
    folder: ObjectID | None = nodes
    for part in name[:2]:
        if folder is not None:
            folder = find_in_tree(get_tree(objects, folder), part)
    return None if folder is None else _find_in_leaf(get_tree(objects, folder), name)


def _find_in_leaf(leaf: Tree, name: NodeHash) -> ObjectID | None:
    return find_in_tree(leaf, name[2:] + JSON_SUFFIX) or find_in_tree(leaf, name[2:] + TEXT_SUFFIX)


class _Folder(NamedTuple):
    oid: ObjectID | None
    before: Tree
    entries: list[bytes]


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
        if folder is None:
            return _Folder(None, Tree(), [])
        return _Folder(folder, get_tree(objects, folder), read_entries(objects, folder))

    def make(self, folder: _Folder) -> ObjectID:
        tree = build_tree(folder.entries)
        if tree.id != folder.oid:
            self.objects.append(tree)
            if folder.oid is not None:
                self.outgrown.add(folder.oid)
        return tree.id


def add_nodes(objects: ObjectStore, nodes: ObjectID | None, added: Iterable[Node]) -> GrownFolder:
    """Build the folder *nodes* (None is empty) with *added* in it; write nothing."""
    growth = GrownFolder()
    root = growth.open(objects, nodes)
    by_place: dict[str, dict[str, list[Node]]] = {}
    for node in added:
        by_place.setdefault(node.hash[0], {}).setdefault(node.hash[1], []).append(node)
    for first, inner in by_place.items():
        middle = growth.open(objects, find_in_tree(root.before, first))
        for second, group in inner.items():
            leaf = growth.open(objects, find_in_tree(middle.before, second))
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
    elif node.hash not in growth.blobs and node is not BUILTIN.get(node.hash):
        kept = decode_node(node.hash, get_blob(objects, present))
        if (kept.type, kept.payload) != (node.type, node.payload):
            raise NodeCollision(node.hash)
    growth.blobs[node.hash] = present


# Unite the `nodes/` folders of several commits: every node that one of them has.
#
# What is the same in all is not read. Format: FORMAT.md, "Branches".

_Entry: TypeAlias = tuple[int, ObjectID]


class United(NamedTuple):
    nodes: ObjectID | None
    objects: ObjectStore

    new: list[ShaFile]
    """The trees that the store may not have."""

    def without(self, outgrown: Collection[ObjectID]) -> list[ShaFile]:
        """Return the new trees without those that larger trees have replaced."""
        return [each for each in self.new if each.id not in outgrown]


class _WithNew(ObjectStore):
    """An object store, and objects that are not written yet."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self.new: dict[ObjectID, RawTree] = {}

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self.new or sha1 in self._objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        found = self.new.get(sha1)
        return self._objects[sha1] if found is None else Tree.from_string(found.as_raw_string())

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        found = self.new.get(name)
        if found is None:
            return self._objects.get_raw(name)
        return found.type_num, found.as_raw_string()


def unite_nodes(
    objects: ObjectStore, folders: Sequence[ObjectID], base: ObjectID | None = None
) -> United:
    """Build the folder with every node of *folders*; nothing is written.

    Of two files for a node the file with the earlier timestamp stays, then the file with the lower
    id: all who unite the same folders get the same folder. Every folder has grown from *base*: an
    entry that only one of them changed is taken from that folder, and not read.
    """
    different = list(dict.fromkeys(folders))
    if len(different) <= 1:
        return United(different[0] if different else None, objects, [])
    more = _WithNew(objects)
    return United(_unite(more, different, base), more, list(more.new.values()))


def _unite(objects: _WithNew, trees: Sequence[ObjectID], base: ObjectID | None) -> ObjectID:
    lists = [read_entries(objects, oid) for oid in trees]
    every = set().union(*lists)
    for oid, entries in zip(trees, lists, strict=True):
        if len(entries) == len(every):
            return oid
    entries, common = lists[0], every.intersection(*lists)
    in_base = set() if base is None else set(read_entries(objects, base))
    before: dict[bytes, _Entry] = {}
    changed: dict[bytes, list[_Entry]] = {}
    for entry in sorted(every.difference(common)):
        name, mode, oid = parse_entry(entry)
        if entry in in_base:
            before[name] = mode, oid
        else:
            changed.setdefault(name, []).append((mode, oid))
    for name, found in changed.items():
        mode, oid = found[0] if len(found) == 1 else _unite_entry(objects, found, before.get(name))
        put_entry(entries, mode, name, oid)
    united = build_tree(entries)
    if united.id not in trees:
        objects.new[united.id] = united
    return united.id


def _unite_entry(objects: _WithNew, found: Sequence[_Entry], before: _Entry | None) -> _Entry:
    if all(mode == TREE_MODE for mode, _oid in found):
        base = before[1] if before is not None and before[0] == TREE_MODE else None
        return TREE_MODE, _unite(objects, [oid for _mode, oid in found], base)
    nodes = [(_read(objects, oid), mode, oid) for mode, oid in found]
    first = nodes[0][0]
    for node, _mode, _oid in nodes:
        if (node.type, node.payload) != (first.type, first.payload):
            taken = NodeCollision(node.hash)
            taken.hint = "`uwf thread fork THREAD` plays the branches anew, in another thread"
            raise taken
    _node, mode, oid = min(nodes, key=lambda each: (each[0].timestamp, each[2]))
    return mode, oid


def _read(objects: ObjectStore, blob: ObjectID) -> Node:
    try:
        return identify_node(get_blob(objects, blob))
    except ValueError as error:
        raise damaged_object(blob, f"is not a node: {error}") from error
