"""Unite the `nodes/` folders of several commits: every node that one of them has.

What is the same in all is not read. Format: FORMAT.md, "Branches".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dulwich.objects import ObjectID, ShaFile, Tree

from uwf_git.model.node import Node
from uwf_git.store.nodes.blob import identify_node
from uwf_git.store.nodes.tree import TREE_MODE, NodeCollision
from uwf_git.store.objects.objects import DamagedObject, ObjectStore, get_blob, get_tree


class United(NamedTuple):
    """A folder that is the union of others."""

    nodes: ObjectID | None
    objects: ObjectStore
    """The store, with the new trees in it."""

    new: list[ShaFile]
    """The trees that the store may not have."""


class _WithNew:
    """An object store, and objects that are not written yet."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self.new: dict[ObjectID, ShaFile] = {}

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self.new or sha1 in self._objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        found = self.new.get(sha1)
        return self._objects[sha1] if found is None else found

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        found = self.new.get(name)
        if found is None:
            return self._objects.get_raw(name)
        return found.type_num, found.as_raw_string()

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,  # noqa: ARG002 - the protocol's signature
    ) -> None:
        self.new.update((each.id, each) for each, _path in objects)


def unite_nodes(objects: ObjectStore, folders: Sequence[ObjectID]) -> United:
    """Build the folder with every node of *folders*; nothing is written.

    Of two files for one node the one with the earlier timestamp stays, then the one with the lower
    id: any two who unite the same folders get the same one.

    Raises:
        NodeCollision: the two have different payloads.
        DamagedObject: a folder cannot be read, or one of two such files is no node.
    """
    different = list(dict.fromkeys(folders))
    if len(different) <= 1:
        return United(different[0] if different else None, objects, [])
    more = _WithNew(objects)
    nodes = _unite(more, different)
    return United(nodes, more, list(more.new.values()))


def _unite(objects: _WithNew, trees: Sequence[ObjectID]) -> ObjectID:
    entries: dict[bytes, list[tuple[int, ObjectID]]] = {}
    for oid in trees:
        for entry in get_tree(objects, oid).items():
            found = entries.setdefault(entry.path, [])
            if (entry.mode, entry.sha) not in found:
                found.append((entry.mode, entry.sha))
    united = Tree()
    for path, found in entries.items():
        united[path] = found[0] if len(found) == 1 else _unite_entry(objects, found)
    if united.id not in trees:
        objects.add_objects([(united, None)])
    return united.id


def _unite_entry(objects: _WithNew, found: Sequence[tuple[int, ObjectID]]) -> tuple[int, ObjectID]:
    if all(mode == TREE_MODE for mode, _oid in found):
        return TREE_MODE, _unite(objects, [oid for _mode, oid in found])
    nodes = [(_read(objects, oid), mode, oid) for mode, oid in found]
    first = nodes[0][0]
    for node, _mode, _oid in nodes:
        if (node.type, node.payload) != (first.type, first.payload):
            raise NodeCollision(node.hash)
    _node, mode, oid = min(nodes, key=lambda each: (each[0].timestamp, each[2]))
    return mode, oid


def _read(objects: ObjectStore, blob: ObjectID) -> Node:
    try:
        return identify_node(get_blob(objects, blob))
    except ValueError as error:
        raise DamagedObject(blob, f"is not a node: {error}") from error
