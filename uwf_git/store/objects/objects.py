"""Loose and packed git objects on the disk, written so that a kill or power loss harms nothing.

What one call writes is one small pack (pack_writer.py); loose objects are read, and no longer
written. dulwich reads whatever is no ordinary loose file or pack: old formats, damage. Its store is
imported when such a thing is met (strict.py): most commands meet none, and it costs 20 ms.
"""

import hashlib
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    ObjectFormatException,
)
from dulwich.objects import (
    DEFAULT_LOOSE_OBJECT_SIZE_LIMIT,
    Blob,
    Commit,
    ObjectID,
    RawObjectID,
    ShaFile,
    Tag,
    Tree,
    sha_to_hex,
    valid_hexsha,
)

from uwf_git.errors import GIVEN_BACK, Refused, StoreDamaged
from uwf_git.model.names import Oid
from uwf_git.store.durable import read_if_there
from uwf_git.store.objects.pack_file import OID_BYTES, ByteCache, Pack, open_pack_folder
from uwf_git.store.objects.pack_writer import KeepFile, PackRights, build_entry, write_pack

if TYPE_CHECKING:
    from uwf_git.store.objects.strict import DulwichObjects

# Loose objects as git writes them, read three times as fast as by dulwich.
#
# Source: gitrepository-layout(5), objects/[0-9a-f][0-9a-f]; git-hash-object(1).

_KINDS = {kind.type_name: kind.type_num for kind in (Commit, Tree, Blob, Tag)}
_LONGEST_HEADER = 32


def read_loose_file(path: str, oid: bytes, *, most_bytes: int) -> tuple[int, bytes] | None:
    """Return git's number of the object's kind, and its content, from the file at *path*.

    None if the file is missing or damaged, another object, or too large. dulwich checks no name.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            compressed = file.read()
        stream = zlib.decompressobj()
        whole = stream.decompress(compressed, most_bytes + _LONGEST_HEADER)
    except (OSError, ValueError, zlib.error):
        return None
    if not stream.eof or stream.unused_data:
        return None
    header, _end, content = whole.partition(b"\0")
    name, _space, size = header.partition(b" ")
    if name not in _KINDS or size != b"%d" % len(content):
        return None
    if hashlib.sha1(whole, usedforsecurity=False).hexdigest().encode() != oid:
        return None
    return _KINDS[name], content


DAMAGE = (
    ApplyDeltaError,
    ArithmeticError,
    AssertionError,
    ChecksumMismatch,
    EOFError,
    FileFormatException,
    IndexError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What dulwich raises for loose files and packs that are cut short or overwritten."""

_Answer = TypeVar("_Answer")

_SMALL_BYTES = 16 * 1024
# As they are stored; as Python objects they take some six times as much.
_FOLDERS_BYTES = 1024 * 1024

_DEEPEST = 5
_UNREADABLE = "cannot be read"
# git never overwrites an object's file, so a fetch alone leaves the broken one.
BROKEN = (
    "if objects/{}/{} is a file of the store, move it elsewhere, since git never overwrites it; "
    "then `git fetch --refetch REMOTE` gives the object back; of a broken pack, a new `uwf clone`"
)


def damaged_object(oid: ObjectID, problem: str) -> StoreDamaged:
    name = oid.decode(errors="replace")
    return StoreDamaged(
        f"git object {name} {problem}",
        code="damaged-object",
        hint=BROKEN.format(name[:2], name[2:]) if _UNREADABLE in problem else GIVEN_BACK,
        object=name,
    )


def _damage(oid: ObjectID | RawObjectID, error: Exception) -> StoreDamaged:
    why = " ".join(str(error).split())[:100] or type(error).__name__
    return damaged_object(ObjectID(oid), f"{_UNREADABLE}: {why}")


class ObjectStore(Protocol):
    """Objects that are read; those of a store can be added to."""

    def __contains__(self, sha1: ObjectID) -> bool:
        """Check whether the object is there."""

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        """Return the object; raise KeyError if it is missing, StoreDamaged if it is damaged."""

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content; raise as ``[]`` does."""

    def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]]) -> object:
        """Write the objects durably."""
        del objects
        raise Refused("nothing can be written while a push is being checked", code="not-writable")


class DurableObjects:
    """The objects below a folder, with crash-safe writing and fast reading."""

    durable: bool = True
    """Whether objects are synced to the disk; this protects against power loss only."""

    share: bool = False
    """Whether a group may read what is written, whatever the umask (core.sharedRepository)."""

    def __del__(self) -> None:
        # Stores are never closed explicitly; their packs stay open as long as the object lives.
        # An error about a damaged pack still holds a part of it.
        with suppress(BufferError):
            # Ctrl-C may have come before the whole pack was there.
            if "_kept" in vars(self):
                self.close()

    def __init__(self, path: str, *, depth: int = 0) -> None:
        """Open the objects below *path*, which are *depth* alternates away from a store."""
        self.path = path
        self.pack_dir = os.path.join(path, "pack")
        self._depth = depth
        # A walk along a thread reads the same trees at every step. They are shared: never
        # modify one.
        self._folders: ByteCache[bytes, Tree] = ByteCache(_FOLDERS_BYTES, largest=_SMALL_BYTES)
        self._packs = open_pack_folder(self.pack_dir)
        self._is_packed = True
        self._kept = _Kept()

    def close(self) -> None:
        """Close the packs, and give up what this thread wrote and no ref needs yet."""
        if "by_dulwich" in vars(self):
            self.by_dulwich.close()
        self._packs.unmap()
        self._kept.pack = None

    def __getitem__(self, sha1: ObjectID | RawObjectID) -> ShaFile:
        folder = self._folders.get(sha1)
        if folder is not None:
            return folder
        kind, content = self.get_raw(sha1)
        try:
            found = ShaFile.from_raw_string(kind, content, sha1)
        except DAMAGE as error:
            raise _damage(sha1, error) from error
        if isinstance(found, Tree):
            self._folders.put(sha1, found, len(content))
        return found

    def __contains__(self, sha1: ObjectID | RawObjectID) -> bool:
        oid = _hex(sha1)
        if oid in self._packs or os.path.exists(self.loose_path(oid)):
            return True
        if any(oid in other for other in self.others):
            return True
        return bool(self._packs.names(unusual=True)) and self.by_dulwich.contains_packed(oid)

    def get_raw(self, name: ObjectID | RawObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content, checked against its id."""
        oid = _hex(name)
        first, second = self._find_loose, self._find_packed
        if self._is_packed:
            # The last object was packed; in a long thread the next thousands are as well.
            first, second = second, first
        # An object that is damaged in one place may be whole in another.
        return first(oid) or second(oid) or self._get_anywhere(oid)

    def ask_packs(self, oid: ObjectID, question: Callable[[Pack, int], _Answer]) -> _Answer | None:
        """Return what *question* says of a pack as git writes it, and the offset of *oid* in it."""
        return self._packs.ask(oid, question)

    @cached_property
    def others(self) -> "tuple[DurableObjects, ...]":
        """The objects that objects/info/alternates names; as in git, five deep at most."""
        if self._depth == _DEEPEST:
            return ()
        named = read_if_there(os.path.join(self.path, "info", "alternates")).splitlines()
        paths = [os.fsdecode(line) for line in named if line and not line.startswith(b"#")]
        return tuple(
            DurableObjects(os.path.join(self.path, path), depth=self._depth + 1) for path in paths
        )

    @cached_property
    def by_dulwich(self) -> "DulwichObjects":
        """The same objects as dulwich reads them, and as its client wants them."""
        from uwf_git.store.objects.strict import DulwichObjects  # noqa: PLC0415 (20 ms; see above)

        return DulwichObjects(self)

    def list_unusual_packs(self) -> list[str]:
        """List the names, without ending, of the packs that could not be read whole."""
        return self._packs.names(unusual=True)

    def loose_path(self, oid: ObjectID) -> str:
        # A name with other characters could lead out of the folder.
        if not valid_hexsha(oid):
            raise ValueError(f"{oid!r} is no object id")
        name = oid.decode("ascii")
        return os.path.join(self.path, name[:2], name[2:])

    def _find_loose(self, oid: ObjectID) -> tuple[int, bytes] | None:
        try:
            path = self.loose_path(oid)
        except ValueError:
            # It is no id.
            return None
        found = read_loose_file(path, oid, most_bytes=DEFAULT_LOOSE_OBJECT_SIZE_LIMIT)
        self._is_packed = self._is_packed and found is None
        return found

    def _find_packed(self, oid: ObjectID) -> tuple[int, bytes] | None:
        found = self._packs.find(oid)
        self._is_packed = self._is_packed or found is not None
        return found

    def _get_anywhere(self, oid: ObjectID) -> tuple[int, bytes]:
        """Return an object that is in an alternate, or that dulwich alone reads."""
        # git may have packed it, and removed its file, since the packs were asked.
        if (found := self._find_packed(oid)) is not None:
            return found
        try:
            path = self.loose_path(oid)
            if os.path.lexists(path) or self._packs.names(unusual=True):
                return self.by_dulwich.get_unusual(oid, path)
        except DAMAGE as error:
            raise _damage(oid, error) from error
        for other in self.others:
            # Suppressed: it may be in the next.
            with suppress(KeyError):
                return other.get_raw(oid)
        raise KeyError(oid)

    def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]]) -> None:
        """Write *objects* as one pack, durably, whether or not they are there already.

        No object then rests on an old pack, which git may be about to drop. Until `release` of a
        commit in it, nobody unites or removes the pack; so a thread of this process has to move
        the ref to the commit that it wrote before it writes the next one.
        """
        needed = {obj.id: obj for obj, _path in objects}
        if not needed:
            return
        rights = PackRights(self.durable, self.share)
        entries = [build_entry(obj) for obj in needed.values()]
        new = write_pack(self.pack_dir, entries, rights, keep=True)
        if new.keep is not None:
            commits = frozenset(oid for oid, obj in needed.items() if isinstance(obj, Commit))
            self._kept.pack = KeptPack(commits, new.keep)
        # What this process wrote is read next.
        self._packs.add(new.path, new.pack_bytes, new.index_bytes)

    def release(self, commit: Oid) -> None:
        """Let go of the pack with *commit*, if this thread wrote it last: a ref is there now."""
        kept = self._kept.pack
        if kept is not None and commit.encode() in kept.commits:
            kept.keep.release()
            self._kept.pack = None


class KeptPack(NamedTuple):
    commits: frozenset[bytes]
    keep: KeepFile


class _Kept(threading.local):
    """The pack that this thread wrote last, until a ref needs it.

    A pack that is given up is let go when its thread writes the next one, ends, or closes the
    store: its `KeepFile` is then forgotten.
    """

    pack: KeptPack | None = None


def _hex(name: ObjectID | RawObjectID) -> ObjectID:
    return sha_to_hex(RawObjectID(name)) if len(name) == OID_BYTES else ObjectID(name)


def disk_places(objects: ObjectStore) -> Iterator[DurableObjects]:
    """Yield the object directories behind *objects*, in the order in which they are searched."""
    for place in getattr(objects, "places", (objects,)):
        if isinstance(place, DurableObjects):
            yield place


def has_object(objects: ObjectStore, oid: Oid) -> bool:
    """Check whether the object *oid* is here, damaged or not."""
    return ObjectID(oid.encode()) in objects


def get_tree(objects: ObjectStore, oid: ObjectID) -> Tree:
    try:
        tree = objects[oid]
    except KeyError:
        raise damaged_object(oid, "is missing") from None
    except ObjectFormatException:
        raise damaged_object(oid, "is not a tree that git would write") from None
    if not isinstance(tree, Tree):
        raise damaged_object(oid, "is not a tree")
    return tree


def read_blob(objects: ObjectStore, oid: Oid) -> bytes:
    return get_blob(objects, ObjectID(oid.encode()))


def get_blob(objects: ObjectStore, oid: ObjectID) -> bytes:
    return get_content(objects, oid, Blob)


def get_content(objects: ObjectStore, oid: ObjectID, wanted: type[Blob | Tree]) -> bytes:
    """Return the bytes of a blob, or of a tree, which is not parsed."""
    try:
        kind, content = objects.get_raw(oid)
    except KeyError:
        raise damaged_object(oid, "is missing") from None
    if kind != wanted.type_num:
        raise damaged_object(oid, f"is not a {wanted.type_name.decode()}")
    return content
