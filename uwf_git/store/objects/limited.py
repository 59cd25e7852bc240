"""Refuse an object that is too large before its content is in memory."""

import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID, RawObjectID, ShaFile, hex_to_sha
from dulwich.pack import PackFileDisappeared

from uwf_git.errors import StoreDamaged
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

# Sizes of objects: how much memory reading one takes, told from headers alone.
#
# No object is inflated beyond its first bytes. The size of a delta is that of the largest object
# on its chain: a small delta can have a base of gigabytes. Source: gitformat-pack(5), "Size
# encoding" and "Deltified representation".

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}

# A type, a size of 64 bits, the place of the base, and enough of the delta for its two numbers.
_HEADER_BYTES = 512
_LONGEST_HEADER = 64

# What reading a file raises that is no pack, or is cut short.
_UNREADABLE = (OSError, IndexError, ValueError, AssertionError, zlib.error)


class ObjectSize(NamedTuple):
    kind: str
    """blob, tree, commit or tag."""

    size_bytes: int
    """Its own size, or the size of a larger object on its chain of deltas."""


def find_size(objects: ObjectStore, oid: ObjectID) -> ObjectSize | None:
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
    for pack in place.by_dulwich.packs:
        # Suppressed: it is not there, or not to be read.
        with suppress(KeyError, PackFileDisappeared, *_UNREADABLE):
            offset = pack.index.object_offset(hex_to_sha(oid))
            with open(pack.data.path, "rb", buffering=0) as file:
                return _measure(_Pack(file.fileno(), pack.index.object_offset), offset)
    return None


class _Pack(NamedTuple):
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


# Limited objects: refuse an object that is too large before its content is in memory.
#
# A few kilobytes on the wire can be a blob of gigabytes, so the size is read from the header
# first.

_KIB = 1024
_MIB = 1024 * _KIB

# Two levels of one character keep the trees of a million nodes below 50 KB.
_TREE_BYTES = 4 * _MIB
_COMMIT_BYTES = _MIB


def _oversized_object(kind: str, oid: str, *, size_bytes: int, most_bytes: int) -> StoreDamaged:
    return StoreDamaged(
        f"{kind} {oid} takes {render_size(size_bytes)}, and at most "
        f"{render_size(most_bytes)} may be pushed here",
        code="oversized-object",
        hint="keep large files elsewhere and name them in the text; the server's owner sets "
        "the limit for blobs: git config uwf.maxBlobSize",
        object=oid,
        size=size_bytes,
    )


class LimitedObjects:
    """The objects of a store; reading an object that is too large raises `StoreDamaged`."""

    def __init__(self, objects: ObjectStore, *, most_blob_bytes: int) -> None:
        self._objects = objects
        self._most_blob_bytes = most_blob_bytes

    def __contains__(self, sha1: ObjectID) -> bool:
        return find_size(self._objects, sha1) is not None

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        self._check_size(sha1)
        return self._objects[sha1]

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        self._check_size(name)
        return self._objects.get_raw(name)

    def _check_size(self, oid: ObjectID) -> None:
        size = find_size(self._objects, oid)
        if size is None:
            return
        most = most_bytes_of(size.kind, most_blob_bytes=self._most_blob_bytes)
        if size.size_bytes > most:
            raise _oversized_object(
                size.kind,
                oid.decode(errors="replace"),
                size_bytes=size.size_bytes,
                most_bytes=most,
            )

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        return self._objects.add_objects(objects, progress)


def most_bytes_of(kind: str, *, most_blob_bytes: int) -> int:
    return {"blob": most_blob_bytes, "tree": _TREE_BYTES}.get(kind, _COMMIT_BYTES)


def render_size(size_bytes: int) -> str:
    """Return a size as git config spells it, rounded up: 5 bytes, 12k, 101m."""
    for unit, letter in ((_MIB * _KIB, "g"), (_MIB, "m"), (_KIB, "k")):
        if size_bytes >= unit:
            return f"{-(-size_bytes // unit)}{letter}"
    return f"{size_bytes} bytes"
