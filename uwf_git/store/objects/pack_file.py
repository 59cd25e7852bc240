"""Pack files as git and uwf write them, read three times as fast as by dulwich.

Anything unusual counts as missing: dulwich then reads it, or reports the damage.
Source: gitformat-pack(5).
"""

import hashlib
import importlib
import itertools
import os
import struct
import time
import zlib
from binascii import unhexlify
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from mmap import ACCESS_READ, mmap
from typing import Generic, NamedTuple, TypeVar

from dulwich.errors import ApplyDeltaError

from uwf_git.store.durable import Stamp, is_settled, stamp_of

# A cache that holds a limited number of bytes; the oldest go first.

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ByteCache(Generic[Key, Value]):
    """Values by key, together at most so many bytes.

    Without a lock, so that a child that another thread forked cannot wait for one: each call on the
    dictionary is atomic, and at worst the sum of the bytes is a little off.
    """

    def __init__(self, most_bytes: int, *, largest: int | None = None) -> None:
        self._most = most_bytes
        self._largest = most_bytes if largest is None else largest
        self._held: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Key) -> Value | None:
        held = self._held.get(key)
        return None if held is None else held[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Hold *value*, which takes *size* bytes, unless the value is too large or held already."""
        if size > self._largest or key in self._held:
            return
        self._held[key] = value, size
        self._bytes += size
        while self._bytes > self._most:
            try:
                _oldest, (_value, freed) = self._held.popitem(last=False)
            except KeyError:
                self._bytes = 0
                return
            self._bytes -= freed


INDEX, PACK = ".idx", ".pack"
INDEX_HEAD = b"\377tOc\0\0\0\2"
_PACK_BEGINNING = (b"PACK\0\0\0\2", b"PACK\0\0\0\3")
_FAN_OUT = struct.Struct(">256I")
OID_BYTES = 20
_NAMES_AT = len(INDEX_HEAD) + _FAN_OUT.size
_CRC_BYTES = _OFFSET_BYTES = 4
_FAR_OFFSET_BYTES = 8
# A larger offset is in another table, which only packs of 2 GB and more have.
FAR = 1 << 31

OFS_DELTA, REF_DELTA = 6, 7
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
# A type, a size of 64 bits, and the place of the base.
_HEADER_BYTES = 64
_FIRST_READ, _NEXT_READ = 4096, 64 * 1024

LONGEST_CHAIN = 5000
"""How many deltas are followed: git makes at most 4095; a circular chain ends here."""


LARGEST_READ = 512 * 1024

_numbers = itertools.count()


UNUSUAL = (
    ApplyDeltaError,
    IndexError,
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    zlib.error,
)


@cache
def _find_apply_delta() -> Callable[[bytes, bytes], Sequence[bytes]]:
    """Return what applies a delta: dulwich's in Rust by itself; all of its packs cost 10 ms."""
    try:  # What uwf writes has no deltas; what git packed has.
        found = importlib.import_module("dulwich._pack")
    except ImportError:
        found = importlib.import_module("dulwich.pack")
    apply_delta: Callable[[bytes, bytes], Sequence[bytes]] = found.apply_delta
    return apply_delta


class Held(NamedTuple):
    """What the packs of a folder hold together, in bytes; packs have numbers of their own."""

    built: ByteCache[tuple[int, int], tuple[int, bytes]]
    """The objects read last, by pack and offset: often the base of the next delta."""

    contents: ByteCache[int, bytes]


class Pack:
    """One pack and its index, each opened when it is needed."""

    def __init__(self, folder: str, name: str, held: Held) -> None:
        self.name = name
        self.is_unusual = False
        """Whether something of it could not be read."""
        self._path = os.path.join(folder, name)
        self._held = held
        self._number = next(_numbers)
        self._index: bytes | mmap | None = None
        self._mapped: mmap | None = None
        self._stamps: dict[str, Stamp] = {}
        self._fan_out: tuple[int, ...] = ()
        self._offsets_at = 0

    @property
    def path(self) -> str:
        return pack_of(self._path)

    def hold(self, content: bytes, index: bytes) -> None:
        # Without stamps, the next `renew` would read them again: that is no harm.
        with suppress(FileNotFoundError):
            for path in (self._path, pack_of(self._path)):
                self._stamps[path] = stamp_of(os.stat(path))
        self._use_index(index)
        self._held.contents.put(self._number, content, len(content))

    def is_as(self, index: Stamp | None, content: Stamp | None) -> bool:
        now = {self._path: index, pack_of(self._path): content}
        return all(now[path] == stamp for path, stamp in self._stamps.items())

    def unmap(self) -> None:
        self._mapped = None
        if isinstance(self._index, mmap):
            self._index = None

    def read(self, offset: int, name: bytes) -> tuple[int, bytes]:
        """Return kind and content of the object *name*, which is at *offset*."""
        kind, content = self._build(offset)
        if name_object(kind, content) != name:
            raise ValueError("the pack has another object under this name")
        return kind, content

    def find_offset(self, name: bytes) -> int | None:
        """Return where the object *name* is, or None; FileNotFoundError: the pack is gone."""
        index = self._index or self._open_index()
        least, most = self._fan_out[name[0]], self._fan_out[name[0] + 1]
        if least == most:
            return None

        def name_of(number: int) -> bytes:
            at = _NAMES_AT + number * OID_BYTES
            return index[at : at + OID_BYTES]

        number = bisect_left(range(most), name, least, most, key=name_of)
        if number == most or name_of(number) != name:
            return None
        at = self._offsets_at + number * _OFFSET_BYTES
        offset = int.from_bytes(index[at : at + _OFFSET_BYTES], "big")
        if offset >= FAR:
            raise ValueError("an offset beyond 2 GB")
        return offset

    def find_delta(self, offset: int) -> tuple[bytes, int] | None:
        content = self._open_content()
        if content[offset] >> 4 & 7 not in {OFS_DELTA, REF_DELTA}:
            return None
        _kind, delta, base = self._read(content, offset)
        return None if base is None else (delta, base)

    def _open_index(self) -> bytes | mmap:
        index, self._stamps[self._path] = _read_or_map(self._path)
        self._use_index(index)
        return index

    def _use_index(self, index: bytes | mmap) -> None:
        if index[:8] != INDEX_HEAD:
            raise ValueError("an index that git does not write today")
        fan_out = (0, *_FAN_OUT.unpack_from(index, len(INDEX_HEAD)))
        problem = _find_odd_length(index, fan_out[-1])
        if problem is not None:
            raise ValueError(problem)
        self._offsets_at = _NAMES_AT + fan_out[-1] * (OID_BYTES + _CRC_BYTES)
        self._fan_out, self._index = fan_out, index

    def _open_content(self) -> bytes | mmap:
        content = self._mapped or self._held.contents.get(self._number)
        if content is not None:
            return content
        path = pack_of(self._path)
        content, self._stamps[path] = _read_or_map(path)
        problem = _find_mismatch(self._index or self._open_index(), content)
        if content[:8] not in _PACK_BEGINNING or problem is not None:
            raise ValueError("a pack that git does not write today")
        if isinstance(content, bytes):
            self._held.contents.put(self._number, content, len(content))
        else:
            self._mapped = content
        return content

    def _build(self, offset: int) -> tuple[int, bytes]:
        content = self._open_content()
        deltas: list[tuple[int, bytes]] = []
        while (built := self._held.built.get((self._number, offset))) is None:
            kind, whole, base = self._read(content, offset)
            if kind not in {OFS_DELTA, REF_DELTA}:
                built = kind, whole
                break
            if base is None or len(deltas) == LONGEST_CHAIN:
                raise ValueError("a delta without a base")
            deltas.append((offset, whole))
            offset = base
        self._hold(offset, built)
        kind, whole = built
        for at, delta in reversed(deltas):
            whole = b"".join(_find_apply_delta()(whole, delta))
            self._hold(at, (kind, whole))
        return kind, whole

    def _hold(self, offset: int, built: tuple[int, bytes]) -> None:
        self._held.built.put((self._number, offset), built, len(built[1]))

    def _read(self, content: bytes | mmap, offset: int) -> tuple[int, bytes, int | None]:
        header = content[offset : offset + _HEADER_BYTES]
        kind, size, at = read_entry_head(header)
        base: int | None = None
        if kind == OFS_DELTA:
            back, at = read_base_distance(header, at)
            base = offset - back if 0 < back < offset else None
        elif kind == REF_DELTA:
            base = self.find_offset(header[at : at + OID_BYTES])
            at += OID_BYTES
        return kind, _inflate(content, offset + at, size), base


def _inflate(content: bytes | mmap, at: int, size: int) -> bytes:
    stream = zlib.decompressobj()
    parts: list[bytes] = []
    left, step = size, _FIRST_READ
    while not stream.eof:
        more = stream.unconsumed_tail or content[at : at + step]
        if not more or left < 0:
            raise ValueError("the pack ends within the entry, or the entry is too long")
        at += 0 if stream.unconsumed_tail else step
        step = _NEXT_READ
        parts.append(stream.decompress(more, left + 1))
        left -= len(parts[-1])
    if left:
        raise ValueError("the entry is too short")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def name_object(kind: int, content: bytes) -> bytes:
    """Return the id of an object, in 20 bytes; *kind* is git's number."""
    head = b"%s %d\0" % (_KINDS.get(kind, b""), len(content))
    return hashlib.sha1(head + content, usedforsecurity=False).digest()


def read_entry_head(entry: bytes) -> tuple[int, int, int]:
    """Return type and size of a pack entry, and where they end (a size has 7 bits a byte)."""
    kind, size, at = entry[0] >> 4 & 7, entry[0] & 15, 1
    shift = 4
    while entry[at - 1] & 128:
        size |= (entry[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return kind, size, at


def read_base_distance(entry: bytes, at: int) -> tuple[int, int]:
    """Return how far back the base begins, and where that number (highest 7 bits first) ends."""
    distance = entry[at] & 127
    while entry[at] & 128:
        at += 1
        distance = (distance + 1) << 7 | entry[at] & 127
    return distance, at + 1


def read_number(content: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the number at *at*, of seven bits a byte, lowest first, and where it ends."""
    number = shift = 0
    while True:
        byte, at = content[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return number, at


def find_pack_problem(path: str) -> str | None:
    """Return why git does not read the pack at *path*, also while it is being written; or None."""
    try:
        index, content = map_file(path.removesuffix(".pack") + ".idx"), map_file(path)
        return _find_mismatch(index, content) if index[:8] == INDEX_HEAD else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, struct.error) as error:
        return f"cannot be read with its index: {error}"


def _find_mismatch(index: bytes | mmap, content: bytes | mmap) -> str | None:
    """Return how a pack differs from what its index says of it; as open_packed_git in git."""
    count = _FAN_OUT.unpack_from(index, len(INDEX_HEAD))[-1]
    problem = _find_odd_length(index, count)
    if problem is None and int.from_bytes(content[8:12], "big") != count:
        problem = f"has another number of objects than its index, {count}"
    if problem is None and content[-OID_BYTES:] != index[-2 * OID_BYTES : -OID_BYTES]:
        problem = "does not end with the checksum that its index has"
    return problem


def _find_odd_length(index: bytes | mmap, count: int) -> str | None:
    least = _NAMES_AT + count * (OID_BYTES + _CRC_BYTES + _OFFSET_BYTES) + 2 * OID_BYTES
    if least <= len(index) <= least + max(count - 1, 0) * _FAR_OFFSET_BYTES:
        return None
    return f"has an index of {len(index)} bytes for {count} objects"


def pack_of(index: str) -> str:
    return index.removesuffix(INDEX) + PACK


def _read_or_map(path: str) -> tuple[bytes | mmap, Stamp]:
    with open(path, "rb", buffering=0) as file:
        stamp = stamp_of(os.fstat(file.fileno()))
        if stamp.size > LARGEST_READ:
            return mmap(file.fileno(), 0, access=ACCESS_READ), stamp
        return file.read(), stamp


def map_file(path: str) -> mmap:
    with open(path, "rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


# The packs of a store: which there are, which one has an object, what is held of them in memory.
#
# Source: gitrepository-layout(5), objects/pack; gitformat-pack(5).

_HELD_BYTES = 8 * 1024 * 1024
_LARGEST_HELD = 1024 * 1024

_MOST_FOLDERS = 4
_MOST_RECENT = 4

# Among more packs than these a look-up takes long; most were united meanwhile.
_MOST_ADDED = 32

_MOST_LISTINGS = 100

_Answer = TypeVar("_Answer")


class PackFolder:
    """The packs in a folder; the list is renewed when an object is not found.

    Packs come and go: each transition writes a pack, and we and git unite packs. Whoever removes a
    pack has its objects elsewhere before, so a new list has what a removed pack held. Threads of
    the program may share the folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Replaced whole, never changed: threads of the program read together.
        self._packs: dict[str, Pack] = {}
        # Those that had an object last, the newest first: the next is probably there too.
        self._recent: tuple[Pack, ...] = ()
        self._seen: Stamp | None = None
        self._added = 0
        self._held = Held(
            ByteCache(_HELD_BYTES, largest=_LARGEST_HELD),
            ByteCache(_HELD_BYTES, largest=LARGEST_READ),
        )

    def find(self, oid: bytes) -> tuple[int, bytes] | None:
        """Return git's number of the object's kind, and its content; None if it is not there.

        What is damaged in one pack may be whole in another.
        """
        return self.ask(oid, lambda pack, offset: pack.read(offset, unhexlify(oid)))

    def __contains__(self, oid: bytes) -> bool:
        return self.ask(oid, lambda _pack, _offset: True) is not None

    def ask(self, oid: bytes, question: Callable[[Pack, int], _Answer | None]) -> _Answer | None:
        """Return the first answer of a pack that has the object, asked with its offset.

        A question that raises one of `UNUSUAL` has no answer. The packs are listed again before
        giving up.
        """
        try:
            name = unhexlify(oid)
        except ValueError:
            name = b""
        if len(name) != OID_BYTES:
            return None
        for _listing in range(_MOST_LISTINGS):
            asked = self._packs
            found = self._ask_all(name, question)
            if found is not None:
                return found
            # Another thread may have listed them meanwhile: then this one has not asked them all.
            if not self._has_changed() and self._packs is asked:
                return None
        return None

    def names(self, *, unusual: bool = False) -> list[str]:
        """List the names of the packs without ending; or those that could not be read whole."""
        return [
            name.removesuffix(INDEX)
            for name, pack in self._packs.items()
            if pack.is_unusual or not unusual
        ]

    def add(self, pack: str, content: bytes, index: bytes) -> None:
        """Hold a pack that was just written, of which *pack* is the path without its ending."""
        name = os.path.basename(pack) + INDEX
        made = Pack(self._path, name, self._held)
        made.hold(content, index)
        self._packs = {**self._packs, name: made}
        self._note(made)
        # Another thread may have listed the packs in between: then this has undone it.
        self._seen = None
        self._added += 1
        if self._added > _MOST_ADDED:
            self._added = 0
            with suppress(FileNotFoundError):
                self._list()

    def renew(self) -> None:
        """List the packs again, and forget what has changed on the disk."""
        try:
            stamps = dict(_list_stamps(self._path))
            self._packs = {
                name: pack
                if pack.is_as(stamps.get(name), stamps.get(pack_of(name)))
                else Pack(self._path, name, self._held)
                for name, pack in self._packs.items()
            }
            self._keep_recent()
            self._list()
        except FileNotFoundError:
            self._packs, self._recent, self._seen = {}, (), None

    def unmap(self) -> None:
        """Let go of the large packs, which are mapped; what is small stays in memory."""
        for pack in self._packs.values():
            pack.unmap()

    def _ask_all(
        self, name: bytes, question: Callable[[Pack, int], _Answer | None]
    ) -> _Answer | None:
        recent = self._recent
        others = (pack for pack in self._packs.values() if pack not in recent)
        for pack in itertools.chain(recent, others):
            try:
                offset = pack.find_offset(name)
                found = None if offset is None else question(pack, offset)
            except FileNotFoundError:
                # Removed since the packs were listed, and not opened before.
                self._forget(pack)
            except UNUSUAL:
                pack.is_unusual = True
            else:
                if found is not None:
                    self._note(pack)
                    return found
        return None

    def _note(self, pack: Pack) -> None:
        recent = self._recent
        if not recent or pack is not recent[0]:
            self._recent = (pack, *(each for each in recent if each is not pack))[:_MOST_RECENT]

    def _keep_recent(self) -> None:
        """Forget which of the packs that have gone were asked last."""
        packs = self._packs
        self._recent = tuple(pack for pack in self._recent if packs.get(pack.name) is pack)

    def _forget(self, pack: "Pack") -> None:
        self._packs = {name: each for name, each in self._packs.items() if each is not pack}
        self._keep_recent()
        # Last, here and below: another thread may have listed the packs meanwhile.
        self._seen = None

    def _has_changed(self) -> bool:
        """List the packs again if the folder has changed; return whether there are others.

        What is open of a removed pack is let go: its objects are elsewhere.
        """
        with suppress(FileNotFoundError):
            is_same = stamp_of(os.stat(self._path)) == self._seen
            # A pack that is united while the names are read may be missing under its old name and
            # under its new one; so what has just changed, or changes, is listed twice.
            return not is_same and (self._list() or (self._seen is None and self._list()))
        return False

    def _list(self) -> bool:
        now_ns, stamp = time.time_ns(), stamp_of(os.stat(self._path))
        files = set(os.listdir(self._path))
        is_same = stamp_of(os.stat(self._path)) == stamp
        names = {name for name in files if name.endswith(INDEX) and pack_of(name) in files}
        known = self._packs
        is_other = names != known.keys()
        if is_other:
            self._packs = {
                name: known.get(name) or Pack(self._path, name, self._held) for name in names
            }
            self._keep_recent()
        self._seen = stamp if is_same and is_settled(stamp, now_ns=now_ns) else None
        return is_other


_opened: OrderedDict[str, PackFolder] = OrderedDict()


def open_pack_folder(path: str) -> PackFolder:
    """Return the packs in the folder at *path*, as they are on the disk now.

    A program opens its store again for each command: what it held of the packs, and what it wrote
    itself, is still in memory then.
    """
    path = os.path.abspath(path)
    folder = _opened.pop(path, None) or PackFolder(path)
    _opened[path] = folder
    while len(_opened) > _MOST_FOLDERS:
        _opened.popitem(last=False)
    folder.renew()
    return folder


def _list_stamps(path: str) -> Iterator[tuple[str, Stamp]]:
    with os.scandir(path) as entries:
        for entry in entries:
            # Suppressed: it has just been removed.
            with suppress(FileNotFoundError):
                if entry.name.endswith((INDEX, PACK)):
                    yield entry.name, stamp_of(entry.stat())
