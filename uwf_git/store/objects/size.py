"""Sizes of objects: how much memory reading one takes, told from headers alone.

No object is inflated beyond its first bytes. The size of a delta is that of the largest object on
its chain: a small delta can have a base of gigabytes.
Source: gitformat-pack(5), "Size encoding" and "Deltified representation".
"""

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID, RawObjectID, hex_to_sha
from dulwich.pack import PackFileDisappeared

from uwf_git.store.objects.objects import DurableObjects, ObjectStore, disk_places
from uwf_git.store.objects.pack_file import (
    LONGEST_CHAIN,
    OFS_DELTA,
    OID_BYTES,
    REF_DELTA,
    Pack,
    read_base_distance,
    read_entry_head,
    read_number,
)

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}

# A type, a size of 64 bits, the place of the base, and enough of the delta for its two numbers.
_HEADER_BYTES = 512
_LONGEST_HEADER = 64

# What reading a file raises that is no pack, or is cut short.
_UNREADABLE = (OSError, IndexError, ValueError, AssertionError, zlib.error)


class ObjectSize(NamedTuple):
    """The memory that reading an object takes."""

    kind: str
    """blob, tree, commit or tag."""

    size_bytes: int
    """Its own size, or that of a larger object on its chain of deltas."""


def find_size(objects: ObjectStore, oid: ObjectID) -> ObjectSize | None:
    """Return the size of *oid*; None if it is missing or cannot be read at all."""
    sizes = (_size_on_disk(place, oid) for place in disk_places(objects))
    return next((size for size in sizes if size is not None), None)


def _size_on_disk(place: DurableObjects, oid: ObjectID) -> ObjectSize | None:
    found = _loose_size(place, oid) or place.ask_packs(oid, _size_in) or _unusual_size(place, oid)
    for alternate in place.others:
        if found is None:
            found = _size_on_disk(alternate, oid)
    return found


def _loose_size(place: DurableObjects, oid: ObjectID) -> ObjectSize | None:
    name = oid.decode()
    try:
        with open(os.path.join(place.path, name[:2], name[2:]), "rb", buffering=0) as file:
            start = zlib.decompressobj().decompress(file.read(_HEADER_BYTES), _LONGEST_HEADER)
    except (OSError, zlib.error):
        return None
    kind, _space, rest = start.partition(b" ")
    size, end, _content = rest.partition(b"\0")
    if not end or not size.isdigit():
        return None
    return ObjectSize(kind.decode(errors="replace"), int(size))


def _size_in(pack: Pack, offset: int) -> ObjectSize | None:
    with open(pack.path, "rb", buffering=0) as file:
        return _measure(_Pack(file.fileno(), pack.find_offset), offset)


def _unusual_size(place: DurableObjects, oid: ObjectID) -> ObjectSize | None:
    """Return the size of an object in a pack that only dulwich reads."""
    for pack in place.by_dulwich.packs:
        # Suppressed: it is not there, or not to be read.
        with suppress(KeyError, PackFileDisappeared, *_UNREADABLE):
            offset = pack.index.object_offset(hex_to_sha(oid))
            with open(pack.data.path, "rb", buffering=0) as file:
                return _measure(_Pack(file.fileno(), pack.index.object_offset), offset)
    return None


class _Pack(NamedTuple):
    """One open pack, and the search in its index."""

    descriptor: int
    find_offset: Callable[[RawObjectID], int | None]


def _measure(pack: _Pack, offset: int) -> ObjectSize | None:
    """Follow the entry at *offset* from base to base; return the largest size on the way."""
    largest = 0
    for _base in range(LONGEST_CHAIN):
        entry = os.pread(pack.descriptor, _HEADER_BYTES, offset)
        kind, size, at = read_entry_head(entry)
        if kind in _KINDS:
            return ObjectSize(_KINDS[kind], max(largest, size))
        if kind == OFS_DELTA:
            back, at = read_base_distance(entry, at)
            base = offset - back
        elif kind == REF_DELTA:
            found = pack.find_offset(RawObjectID(entry[at : at + OID_BYTES]))
            if found is None:
                return None
            base, at = found, at + OID_BYTES
        else:
            return None
        # Both the delta and its result are held in memory.
        largest = max(largest, size, _size_after(entry[at:]))
        offset = base
    return None


def _size_after(compressed: bytes) -> int:
    """Return the size of the object that a delta makes: the second number in it."""
    delta = zlib.decompressobj().decompress(compressed, _LONGEST_HEADER)
    _size_before, at = read_number(delta, 0)
    return read_number(delta, at)[0]
