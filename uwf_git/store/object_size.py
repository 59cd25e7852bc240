"""Sizes of objects: how much memory reading one will take, told from headers alone.

Owns: reading the first bytes of a loose file, and the headers of a pack's entries.
Knows nothing of: what the objects are for, and which size is too large.
Always true: no object is inflated beyond its first bytes. Of a delta the size is that of the
largest object that has to be built for it: a small one can stand on a base of gigabytes.
Source: gitformat-pack(5), "Size encoding" and "Deltified representation".
"""

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dulwich.object_store import DiskObjectStore
from dulwich.objects import ObjectID, RawObjectID, hex_to_sha
from dulwich.pack import PackFileDisappeared

from uwf_git.store.objects import ObjectStore

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFS_DELTA, _REF_DELTA = 6, 7
_OID_BYTES = 20

# A type, a size of 64 bits, the way to the base, and enough of the delta for its two numbers.
_HEADER_BYTES = 512
_LONGEST_HEADER = 64
# More than git makes (its longest is 4095): a chain that leads in a circle ends here.
_LONGEST_CHAIN = 5000

# What a file that is no pack, or is cut short, makes of the reading below.
_UNREADABLE = (OSError, IndexError, ValueError, AssertionError, zlib.error)


class ObjectSize(NamedTuple):
    """What it takes to read an object."""

    kind: str
    """blob, tree, commit or tag."""

    size_bytes: int
    """Its own size, or that of a larger one which it is a delta against."""


def find_size(objects: ObjectStore, oid: ObjectID) -> ObjectSize | None:
    """Tell what it takes to read *oid*; None if it is not there, or cannot be read at all."""
    places = getattr(objects, "places", (objects,))
    for place in places:
        found = (
            _size_on_disk(place, oid)
            if isinstance(place, DiskObjectStore)
            else _size_in_memory(place, oid)
        )
        if found is not None:
            return found
    return None


def _size_in_memory(objects: ObjectStore, oid: ObjectID) -> ObjectSize | None:
    try:
        found = objects[oid]
    except KeyError:
        return None
    return ObjectSize(found.type_name.decode(), found.raw_length())


def _size_on_disk(place: DiskObjectStore, oid: ObjectID) -> ObjectSize | None:
    found = _loose_size(place, oid) or _packed_size(place, oid)
    for alternate in place.alternates:
        if found is None and isinstance(alternate, DiskObjectStore):
            found = _size_on_disk(alternate, oid)
    return found


def _loose_size(place: DiskObjectStore, oid: ObjectID) -> ObjectSize | None:
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


def _packed_size(place: DiskObjectStore, oid: ObjectID) -> ObjectSize | None:
    for pack in place.packs:
        # It may have been repacked away in this moment; reading it comes to the same end.
        with suppress(KeyError, PackFileDisappeared, *_UNREADABLE):
            offset = pack.index.object_offset(hex_to_sha(oid))
            with open(pack.data.path, "rb", buffering=0) as file:
                return _measure(_Pack(file.fileno(), pack.index.object_offset), offset)
    return None


class _Pack(NamedTuple):
    """One pack, read where its entries lie."""

    descriptor: int
    find_offset: Callable[[RawObjectID], int]


def _measure(pack: _Pack, offset: int) -> ObjectSize | None:
    """Follow the entry at *offset* from base to base; its size is the largest on the way."""
    largest = 0
    for _base in range(_LONGEST_CHAIN):
        entry = os.pread(pack.descriptor, _HEADER_BYTES, offset)
        kind, size, at = _read_head(entry)
        if kind in _KINDS:
            return ObjectSize(_KINDS[kind], max(largest, size))
        if kind == _OFS_DELTA:
            back, at = _read_distance(entry, at)
            base = offset - back
        elif kind == _REF_DELTA:
            base = pack.find_offset(RawObjectID(entry[at : at + _OID_BYTES]))
            at += _OID_BYTES
        else:
            return None
        # A delta is held in memory as well as what it makes.
        largest = max(largest, size, _size_after(entry[at:]))
        offset = base
    return None


def _read_head(entry: bytes) -> tuple[int, int, int]:
    """Give the type and the size of an entry, and where they end."""
    kind, size, at = entry[0] >> 4 & 7, entry[0] & 15, 1
    if entry[0] & 128:
        rest, at = _read_number(entry, 1)
        size |= rest << 4
    return kind, size, at


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """Give the number at *at*, of seven bits a byte, lowest first, and where it ends."""
    number = shift = 0
    while True:
        byte, at = content[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return number, at


def _read_distance(entry: bytes, at: int) -> tuple[int, int]:
    """Give how far back the base lies: seven bits a byte, highest first, no number twice."""
    distance = entry[at] & 127
    while entry[at] & 128:
        at += 1
        distance = (distance + 1) << 7 | entry[at] & 127
    return distance, at + 1


def _size_after(compressed: bytes) -> int:
    """Give the size of what a delta makes: the second number in it."""
    delta = zlib.decompressobj().decompress(compressed, _LONGEST_HEADER)
    _size_before, at = _read_number(delta, 0)
    return _read_number(delta, at)[0]
