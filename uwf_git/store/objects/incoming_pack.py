"""Index a pack that a remote sent: within limits, in little memory."""

import hashlib
import os
import struct
import zlib
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, NamedTuple

from dulwich.objects import ObjectID, RawObjectID, ShaFile, hex_to_sha
from dulwich.pack import PackFileDisappeared, apply_delta

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.text import render_size
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES
from uwf_git.store.objects.objects import (
    DAMAGE,
    DurableObjects,
    ObjectStore,
    damaged_object,
    disk_places,
)
from uwf_git.store.objects.pack_file import (
    LONGEST_CHAIN,
    OFS_DELTA,
    OID_BYTES,
    REF_DELTA,
    name_object,
    read_base_distance,
    read_entry_head,
    read_number,
)
from uwf_git.store.objects.pack_writer import format_entry_head, format_index

# Sizes of objects: how much memory reading one takes, told from headers alone.
#
# No object is inflated beyond its first bytes. The size of a delta is that of the largest object
# on its chain: a small delta can have a base of gigabytes. Source: gitformat-pack(5), "Size
# encoding" and "Deltified representation".

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}

# A type, a size of 64 bits, the place of the base, and enough of the delta for its two numbers.
_HEADER_BYTES = 512
_LONGEST_HEADER = 64


class ObjectSize(NamedTuple):
    kind: str
    """blob, tree, commit or tag."""

    size_bytes: int
    """Its own size, or the size of a larger object on its chain of deltas."""


def find_size(objects: ObjectStore, oid: ObjectID) -> ObjectSize | None:
    return _find_size(disk_places(objects), oid)


def _find_size(places: Iterable[DurableObjects], oid: ObjectID) -> ObjectSize | None:
    return next(filter(None, (_size_on_disk(place, oid) for place in places)), None)


def _size_on_disk(place: DurableObjects, oid: ObjectID) -> ObjectSize | None:
    return (
        _loose_size(place, oid)
        or place.ask_packs(oid, lambda pack, offset: _measure(pack.path, pack.find_offset, offset))
        or _unusual_size(place, oid)
        or _find_size(place.others, oid)
    )


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


def _unusual_size(place: DurableObjects, oid: ObjectID) -> ObjectSize | None:
    for pack in place.by_dulwich.packs:
        # Suppressed: it is not there, or not to be read.
        with suppress(KeyError, OSError, PackFileDisappeared, *DAMAGE):
            offset = pack.index.object_offset(hex_to_sha(oid))
            return _measure(os.fspath(pack.data.path), pack.index.object_offset, offset)
    return None


def _measure(
    path: str, find_offset: Callable[[RawObjectID], int | None], offset: int
) -> ObjectSize | None:
    """Follow the entry at *offset* of a pack from base to base; return the largest size."""
    with open(path, "rb", buffering=0) as file:
        largest = 0
        for _base in range(LONGEST_CHAIN):
            entry = os.pread(file.fileno(), _HEADER_BYTES, offset)
            kind, size, at = read_entry_head(entry)
            if kind in _KINDS:
                return ObjectSize(_KINDS[kind], max(largest, size))
            if kind == OFS_DELTA:
                back, at = read_base_distance(entry, at)
                base = offset - back
            elif kind == REF_DELTA:
                found = find_offset(RawObjectID(entry[at : at + OID_BYTES]))
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

_MIB = 1024 * 1024

# Two levels of one character keep the trees of a million nodes below 50 KB.
_TREE_BYTES = 4 * _MIB
_COMMIT_BYTES = _MIB


class LimitedObjects(ObjectStore):
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

    def _check_size(self, name: ObjectID) -> None:
        size = find_size(self._objects, name)
        if size is None:
            # git takes packs in which only unfolding an object tells how large it is.
            if name in self._objects:
                raise damaged_object(name, "cannot be read: it does not say how large it is")
            return
        most = most_bytes_of(size.kind, most_blob_bytes=self._most_blob_bytes)
        if size.size_bytes > most:
            oid = name.decode(errors="replace")
            raise StoreDamaged(
                f"{size.kind} {oid} takes {render_size(size.size_bytes)}, and at most "
                f"{render_size(most)} may be pushed here",
                code="oversized-object",
                hint="keep large files elsewhere and name them in the text; the server's owner "
                "sets the limit for blobs: git config uwf.maxBlobSize",
                object=oid,
                size=size.size_bytes,
            )


def most_bytes_of(kind: str, *, most_blob_bytes: int) -> int:
    return {"blob": most_blob_bytes, "tree": _TREE_BYTES}.get(kind, _COMMIT_BYTES)


# Limits on a pack that a remote sends: sizes, number of objects, depth of deltas.
#
# A few kilobytes on the wire can unfold to gigabytes, so each size is judged before it is
# unfolded.

MAX_BLOB_SIZE = "uwf.maxBlobSize"
MAX_FETCH_SIZE = "uwf.maxFetchSize"
MAX_FETCH_OBJECTS = "uwf.maxFetchObjects"
MAX_FETCH_REFS = "uwf.maxFetchRefs"

DEFAULT_OBJECTS = 1_000_000
DEFAULT_REFS = 100_000

LONGEST_INCOMING_CHAIN = 4095
"""The most deltas from an object to its base: git writes no longer chains (pack.depth)."""

_TALK_BYTES = 24 * 1024 * 1024
# A line of git's list of refs; as Python values it takes ten times as much.
_REF_BYTES = 96

_GIB = 1024**3
_PACK_BYTES = 4 * _GIB
_TIMES_A_PACK = 256
# What git writes unfolds to less; where it does not, memory and time are still bounded.
_LEAST_UNFOLDED = _GIB
_TIMES_UNFOLDED = 8


def transfer_too_large(what: str, most: str, *, setting: str | None = None) -> Refused:
    """Return the error for a transfer above a limit; nothing of the transfer was kept."""
    raised = f"`git config --global {setting} NUMBER` accepts more; " if setting else ""
    return Refused(
        f"the remote sends {what}, and at most {most} are accepted; nothing was kept",
        code="transfer-too-large",
        hint=f"{raised}ask the remote's owner whether it should",
        setting=setting,
    )


class PackLimits(NamedTuple):
    most_blob_bytes: int = DEFAULT_BLOB_BYTES
    most_objects: int = DEFAULT_OBJECTS
    most_bytes: int | None = None
    """Of all objects together; None: 4g in the pack, and 256 times the pack, but at least 1g."""

    most_refs: int = DEFAULT_REFS
    """That are new, or have moved: each of them is checked."""

    @property
    def most_talk_bytes(self) -> int:
        """What a remote may send besides the pack: all its refs, answers and messages."""
        return max(_TALK_BYTES, self.most_refs * _REF_BYTES)

    def check_refs(self, refs: int) -> None:
        if refs > self.most_refs:
            told = f"{refs} refs that are new or have moved"
            raise transfer_too_large(told, str(self.most_refs), setting=MAX_FETCH_REFS)

    def check_pack(self, size_bytes: int) -> None:
        most = _PACK_BYTES if self.most_bytes is None else self.most_bytes
        if size_bytes > most:
            told = f"a pack of more than {render_size(most)}"
            raise transfer_too_large(told, render_size(most), setting=MAX_FETCH_SIZE)

    def check_count(self, objects: int) -> None:
        if objects > self.most_objects:
            raise transfer_too_large(
                f"{objects} objects", str(self.most_objects), setting=MAX_FETCH_OBJECTS
            )

    def check_object(self, kind: str, size_bytes: int) -> None:
        most = most_bytes_of(kind, most_blob_bytes=self.most_blob_bytes)
        if size_bytes > most:
            raise transfer_too_large(
                f"a {kind} of {render_size(size_bytes)}",
                render_size(most),
                setting=MAX_BLOB_SIZE if kind == "blob" else None,
            )

    def check_delta(self, size_bytes: int) -> None:
        """Raise `Refused` for an object of so many bytes whose kind is not known yet."""
        blobs = self.most_blob_bytes
        kind = max("tree", "blob", key=lambda each: most_bytes_of(each, most_blob_bytes=blobs))
        self.check_object(kind, size_bytes)

    def check_unfolded(self, size_bytes: int, pack_bytes: int, *, again: bool = False) -> None:
        """Raise `Refused` if a pack unfolds to so many bytes; *again*: all that were made."""
        most = self.most_bytes
        if most is None:
            most = max(_LEAST_UNFOLDED, _TIMES_A_PACK * pack_bytes)
        if size_bytes > most * (_TIMES_UNFOLDED if again else 1):
            told = f"a pack of {render_size(pack_bytes)} that unfolds to {render_size(size_bytes)}"
            raise transfer_too_large(told, render_size(most), setting=MAX_FETCH_SIZE)


# Index a pack that a remote sent: within limits, in little memory, each object checked by name.
#
# Memory is some 60 bytes an object, and a few objects of the largest size that is accepted.
# Objects are never all unfolded at once: dulwich holds the bases of a whole chain of deltas, and
# git an object of any size. Source: gitformat-pack(5).

FindBase = Callable[[bytes], tuple[int, bytes]]
"""Returns kind and content of an object outside of the pack; raises KeyError for a missing object.
"""

_HEAD = struct.Struct(">4sII")
_VERSIONS = (2, 3)
_DELTAS = (OFS_DELTA, REF_DELTA)

_LONGEST_ENTRY_HEAD = 64
_DELTA_HEAD = 32
_BLOCK = 1024 * 1024
_FIRST_READ, _NEXT_READ = 4096, 64 * 1024
_HELD_BYTES = 16 * 1024 * 1024
_NONE = -1


def count_objects(beginning: bytes) -> int:
    if len(beginning) < _HEAD.size:
        raise ValueError("the pack is cut short")
    magic, version, count = _HEAD.unpack_from(beginning)
    if magic != b"PACK" or version not in _VERSIONS:
        raise ValueError("it is no pack")
    return int(count)


class IncomingPack:
    """A pack in a *file* that can also be written: missing bases of deltas are appended."""

    def __init__(self, file: IO[bytes], limits: PackLimits, find_base: FindBase) -> None:
        self._file, self._limits, self._find_base = file, limits, find_base
        self._size = file.seek(0, os.SEEK_END)
        self._end = self._size - OID_BYTES
        self._block_at, self._block = 0, b""
        self._unfolded = self._made = 0
        # By the number of the object: a million objects as Python values would take 1 GB.
        self._offsets, self._crcs, self._sizes = array("Q"), array("I"), array("Q")
        self._kinds, self._names, self._depths = bytearray(), bytearray(), array("H")
        self._bases, self._first, self._next = array("i"), array("i"), array("i")
        self._waiting: dict[bytes, list[int]] = {}
        self._held: OrderedDict[int, bytes] = OrderedDict()
        self._held_bytes = 0

    def index(self, index_path: str) -> bytes:
        """Check the pack, complete it, and write its index; return its checksum."""
        if self._end < _HEAD.size:
            raise ValueError("the pack is cut short")
        count = count_objects(self._read(0, _HEAD.size))
        self._limits.check_count(count)
        checksum = self._sum(self._end)
        if checksum != os.pread(self._file.fileno(), OID_BYTES, self._end):
            raise ValueError("the pack does not match its checksum")
        at = _HEAD.size
        for _number in range(count):
            at = self._scan(at)
        if at != self._end:
            raise ValueError("the pack does not end after its last object")
        self._resolve(count)
        if len(self._offsets) > count:
            checksum = self._complete()
        names = bytes(self._names)
        parts = format_index(names=names, crcs=self._crcs, offsets=self._offsets, pack_sum=checksum)
        with open(index_path, "wb") as file:
            file.writelines(parts)
        return checksum

    def _scan(self, at: int) -> int:
        """Read the object at *at*, and name it if it is whole; return where it ends."""
        head = self._read(at, _LONGEST_ENTRY_HEAD)
        kind, size, begin = read_entry_head(head)
        base, ref = _NONE, b""
        if kind == OFS_DELTA:
            back, begin = read_base_distance(head, begin)
            base = self._find_number(at - back)
        elif kind == REF_DELTA:
            ref, begin = head[begin : begin + OID_BYTES], begin + OID_BYTES
        elif kind not in _KINDS:
            raise ValueError(f"the pack has an object of kind {kind}")
        name = b"\0" * OID_BYTES
        if kind in _DELTAS:
            self._limits.check_delta(size)
            start = bytearray()
            # Of a delta the two sizes at its beginning are kept.
            end = self._inflate(
                at + begin, size, lambda part: start.extend(part[: _DELTA_HEAD - len(start)])
            )
            size = read_number(start, read_number(start, 0)[1])[0]
            self._limits.check_delta(size)
        else:
            self._limits.check_object(_KINDS[kind], size)
            head = f"{_KINDS[kind]} {size}\0".encode()
            digest = hashlib.sha1(head, usedforsecurity=False)
            end = self._inflate(at + begin, size, digest.update)
            name = digest.digest()
        if end > self._end:
            raise ValueError("the pack is cut short")
        number = self._add(at, end, kind, size, name)
        if kind == OFS_DELTA:
            self._next[number], self._first[base] = self._first[base], number
        elif kind == REF_DELTA:
            self._waiting.setdefault(ref, []).append(number)
        return end

    def _find_number(self, offset: int) -> int:
        number = bisect_left(self._offsets, max(offset, 0))
        if number == len(self._offsets) or self._offsets[number] != offset:
            raise ValueError("a delta has no base")
        return number

    def _add(self, at: int, end: int, kind: int, size: int, name: bytes) -> int:
        self._unfolded += size
        self._limits.check_unfolded(self._unfolded, self._size)
        self._offsets.append(at)
        self._crcs.append(self._crc(at, end))
        self._sizes.append(size)
        self._kinds.append(kind)
        self._names += name
        self._depths.append(0)
        for links in (self._bases, self._first, self._next):
            links.append(_NONE)
        return len(self._offsets) - 1

    def _resolve(self, count: int) -> None:
        for number in range(count):
            if self._bases[number] == _NONE and self._kinds[number] in _KINDS:
                self._follow(number)
        for name in list(self._waiting):
            if name in self._waiting:
                self._follow(self._append(name))
        if any(kind in _DELTAS for kind in self._kinds):
            raise ValueError("a delta has no base")

    def _follow(self, root: int) -> None:
        """Name the deltas on top of *root*, those on top of them, and so on."""
        todo = [root]
        while todo:
            base = todo.pop()
            children = list(self._children(base))
            if not children:
                continue
            kind, below = self._kinds[base], self._build(base)
            deltas = self._depths[base] + 1
            if deltas > LONGEST_INCOMING_CHAIN:
                raise transfer_too_large(f"a chain of {deltas} deltas", str(LONGEST_INCOMING_CHAIN))
            for number in children:
                self._limits.check_object(_KINDS[kind], self._sizes[number])
                self._bases[number], self._kinds[number] = base, kind
                self._depths[number] = deltas
                name = name_object(kind, self._apply(below, number))
                self._names[number * OID_BYTES : (number + 1) * OID_BYTES] = name
            todo += children

    def _children(self, base: int) -> Iterator[int]:
        name = bytes(self._names[base * OID_BYTES : (base + 1) * OID_BYTES])
        yield from self._waiting.pop(name, ())
        number = self._first[base]
        while number != _NONE:
            yield number
            number = self._next[number]

    def _build(self, number: int) -> bytes:
        """Return the content of an object whose bases are named."""
        chain = []
        while number not in self._held and self._bases[number] != _NONE:
            chain.append(number)
            number = self._bases[number]
        content = self._held.get(number)
        if content is None:
            content = self._own_bytes(number)
            self._hold(number, content)
        for each in reversed(chain):
            content = self._apply(content, each)
        return content

    def _apply(self, below: bytes, number: int) -> bytes:
        content = b"".join(apply_delta(below, self._own_bytes(number)))
        self._count_made(len(content))
        self._hold(number, content)
        return content

    def _own_bytes(self, number: int) -> bytes:
        at = self._offsets[number]
        head = self._read(at, _LONGEST_ENTRY_HEAD)
        kind, size, begin = read_entry_head(head)
        if kind == OFS_DELTA:
            begin = read_base_distance(head, begin)[1]
        elif kind == REF_DELTA:
            begin += OID_BYTES
        self._count_made(size)
        parts: list[bytes] = []
        self._inflate(at + begin, size, parts.append)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _count_made(self, size_bytes: int) -> None:
        self._made += size_bytes
        self._limits.check_unfolded(self._made, self._size, again=True)

    def _hold(self, number: int, content: bytes) -> None:
        """Hold the content of an object, and let go of the contents that were held longest."""
        if number in self._held:
            return
        self._held[number] = content
        self._held_bytes += len(content)
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            self._held_bytes -= len(self._held.popitem(last=False)[1])

    def _append(self, name: bytes) -> int:
        """Append the object *name*, which is here and not in the pack."""
        try:
            kind, content = self._find_base(name)
        except KeyError:
            raise ValueError("a delta has no base") from None
        at, self._block = self._end, b""
        self._write(at, format_entry_head(kind, len(content)) + zlib.compress(content))
        self._end = self._file.tell()
        return self._add(at, self._end, kind, len(content), name)

    def _complete(self) -> bytes:
        """Correct the number of objects and the checksum; return the checksum."""
        self._write(0, _HEAD.pack(b"PACK", _VERSIONS[0], len(self._offsets)))
        checksum = self._sum(self._end)
        self._write(self._end, checksum)
        return checksum

    def _write(self, at: int, content: bytes) -> None:
        self._file.seek(at)
        self._file.write(content)
        self._file.flush()

    def _inflate(self, at: int, size: int, take: Callable[[bytes], object]) -> int:
        """Pass the *size* bytes that are compressed at *at* to *take*; return where they end."""
        stream = zlib.decompressobj()
        left, step, more = size, _FIRST_READ, b""
        while not stream.eof:
            if not more:
                more = self._read(at, step)
                at, step = at + len(more), _NEXT_READ
                if not more:
                    raise ValueError("the pack is cut short")
            part = stream.decompress(more, min(left + 1, _BLOCK))
            more = stream.unconsumed_tail
            left -= len(part)
            if left < 0:
                break
            if part:
                take(part)
        if left:
            raise ValueError("an object has another length than it says")
        return at - len(stream.unused_data)

    def _read(self, at: int, size: int) -> bytes:
        """Return up to *size* bytes at *at*; what is read next is probably behind them."""
        begin = at - self._block_at
        if begin < 0 or begin + size > len(self._block):
            self._block = os.pread(self._file.fileno(), max(size, _NEXT_READ), at)
            self._block_at, begin = at, 0
        return self._block[begin : begin + size]

    def _crc(self, at: int, end: int) -> int:
        crc = 0
        while at < end:
            part = self._read(at, min(end - at, _NEXT_READ))
            crc, at = zlib.crc32(part, crc), at + len(part)
        return crc

    def _sum(self, end: int) -> bytes:
        """Return the SHA-1 of the first *end* bytes."""
        digest = hashlib.sha1(usedforsecurity=False)
        for at in range(0, end, _BLOCK):
            digest.update(os.pread(self._file.fileno(), min(_BLOCK, end - at), at))
        return digest.digest()
