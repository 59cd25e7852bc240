"""Unite the `nodes/` folders of several commits: every node that one of them has.

What is the same in all is not read. Format: FORMAT.md, "Branches".
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from dulwich.objects import ObjectID, ShaFile, Tree

from uwf_git.model.node import Node
from uwf_git.store.nodes.blob import identify_node
from uwf_git.store.nodes.raw_tree import RawTree, build_tree, parse_entry, put_entry, read_entries
from uwf_git.store.nodes.tree import TREE_MODE, node_collision
from uwf_git.store.objects.objects import DamagedObject, ObjectStore, get_blob

_Entry: TypeAlias = tuple[int, ObjectID]
"""Mode and object of a name."""


class United(NamedTuple):
    """A folder that is the union of others."""

    nodes: ObjectID | None
    objects: ObjectStore
    """The store, with the new trees in it."""

    new: list[ShaFile]
    """The trees that the store may not have."""

    def without(self, outgrown: Collection[ObjectID]) -> list[ShaFile]:
        """Return the new trees but those in whose place larger ones have come."""
        return [each for each in self.new if each.id not in outgrown]


class _WithNew:
    """An object store, and objects that are not written yet."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self.new: dict[ObjectID, RawTree] = {}

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self.new or sha1 in self._objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        found = self.new.get(sha1)
        if found is None:
            return self._objects[sha1]
        return Tree.from_string(found.as_raw_string())

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        found = self.new.get(name)
        if found is None:
            return self._objects.get_raw(name)
        return found.type_num, found.as_raw_string()

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> None:
        raise NotImplementedError  # nothing is written here


def unite_nodes(
    objects: ObjectStore, folders: Sequence[ObjectID], base: ObjectID | None = None
) -> United:
    """Build the folder with every node of *folders*; nothing is written.

    Of two files for one node the one with the earlier timestamp stays, then the one with the lower
    id: any two who unite the same folders get the same one. With *base*, from which each of them
    has grown, an entry that one of them alone changed is taken from it, and not read.

    Raises:
        StoreDamaged: the two have different payloads.
        DamagedObject: a folder cannot be read, or one of two such files is no node.
    """
    different = list(dict.fromkeys(folders))
    if len(different) <= 1:
        return United(different[0] if different else None, objects, [])
    more = _WithNew(objects)
    nodes = _unite(more, different, base)
    return United(nodes, more, list(more.new.values()))


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
            raise node_collision(node.hash)
    _node, mode, oid = min(nodes, key=lambda each: (each[0].timestamp, each[2]))
    return mode, oid


def _read(objects: ObjectStore, blob: ObjectID) -> Node:
    try:
        return identify_node(get_blob(objects, blob))
    except ValueError as error:
        raise DamagedObject(blob, f"is not a node: {error}") from error
