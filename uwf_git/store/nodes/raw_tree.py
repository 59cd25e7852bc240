"""Trees of git as lists of raw entries: what is written at each step is not parsed and copied.

dulwich would parse, sort and format every entry, and a folder of a deep thread has many.
"""

import re
from bisect import bisect_left

from dulwich.objects import ObjectID, ShaFile, Tree

from uwf_git.store.objects.objects import ObjectStore, get_tree

_TREE_MODE = b"40000"
_ENTRY = re.compile(rb"[0-7]+ [^\0]+\0.{20}", re.DOTALL)


class RawTree(ShaFile):
    """A tree that is only written: dulwich's Tree is parsed when it is made."""

    type_name, type_num = Tree.type_name, Tree.type_num

    def _deserialize(self, chunks: list[bytes]) -> None:
        """Keep the raw chunks alone."""


def read_entries(objects: ObjectStore, oid: ObjectID) -> list[bytes]:
    """Return the entries of a tree, raw.

    Raises:
        DamagedObject: it is missing, or is not a tree.
    """
    # The object store keeps trees, and not what they are made of.
    entries: list[bytes] = _ENTRY.findall(get_tree(objects, oid).as_raw_string())
    return entries


def build_tree(entries: list[bytes]) -> RawTree:
    """Return the tree of raw entries."""
    return RawTree.from_string(b"".join(entries))


def parse_entry(entry: bytes) -> tuple[bytes, int, ObjectID]:
    """Return name, mode and object of a raw entry."""
    # No mode and no name holds the byte 0.
    head, _, raw = entry.partition(b"\0")
    mode, _, name = head.partition(b" ")
    return name, int(mode, 8), ObjectID(raw.hex().encode())


def put_entry(entries: list[bytes], mode: int, name: bytes, oid: ObjectID) -> None:
    """Add an entry, or replace the one of this name."""
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
    """Return the key by which git sorts the entries of a tree."""
    mode, _, name = entry.partition(b"\0")[0].partition(b" ")
    return name + b"/" if mode == _TREE_MODE else name
