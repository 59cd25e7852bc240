"""Loose and packed git objects on the disk, written so that a kill or power loss harms nothing.

When ``add_objects`` returns, every object is durable under its name; a process that is killed
before leaves at worst ``tmp_obj_*`` files, which git's prune removes. (dulwich's ``add_object``,
killed, leaves ``<object>.lock``, and that object can never be written again.)
dulwich reads whatever is no ordinary loose file or pack: alternates, old formats, damage.
"""

import hashlib
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_store import DiskObjectStore
from dulwich.objects import (
    Blob,
    Commit,
    EmptyFileException,
    ObjectID,
    RawObjectID,
    ShaFile,
    Tag,
    Tree,
    sha_to_hex,
)
from dulwich.pack import PackFileDisappeared

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.store.disk.durable import add_files, sync_directories
from uwf_git.store.objects.pack_file import PackFolder
from uwf_git.store.oid import Oid

_READ_ONLY = 0o444

# What dulwich raises for loose files and packs that are cut short or overwritten.
_DAMAGE = (
    ApplyDeltaError,
    ArithmeticError,
    AssertionError,
    ChecksumMismatch,
    EmptyFileException,
    EOFError,
    FileFormatException,
    IndexError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)

_SMALL_BYTES = 16 * 1024
_MOST_FOLDERS = 2000


_KINDS = {kind.type_name: kind.type_num for kind in (Commit, Tree, Blob, Tag)}
_NAMES = {number: name for name, number in _KINDS.items()}

# Below a day, the shortest time that store/gc/policy.py keeps an unreferenced object.
_OLD_PACK_S = 12 * 3600

_OID_BYTES = 20
_UNREADABLE = "cannot be read"
# git never overwrites an object's file, so a fetch alone leaves the broken one.
BROKEN = (
    "if objects/{}/{} is a file of the store, move it elsewhere, since git never overwrites it; "
    "then `git fetch --refetch REMOTE` gives the object back; of a broken pack, a new `uwf clone`"
)
_LONGEST_HEADER = 32
_PIECE = 1024 * 1024


def _digest(whole: bytes) -> bytes:
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest().encode()


def _name(kind: int, content: bytes) -> bytes:
    return _digest(b"%s %d\0%s" % (_NAMES.get(kind, b""), len(content), content))


def _can_be_freshened(pack: str) -> bool:
    """Check whether touching the file *pack* protects its objects from git's prune.

    Not a cruft pack, whose list of times counts instead; and not an old pack, which a running
    `git gc` may already have decided to drop.
    """
    is_young = time.time() - os.stat(pack).st_mtime < _OLD_PACK_S
    return is_young and not os.path.exists(pack.removesuffix(".pack") + ".mtimes")


class DamagedObject(StoreDamaged):
    """A git object is missing, or its content does not match its id."""

    code = "damaged-object"

    def __init__(self, oid: ObjectID, problem: str) -> None:
        name = oid.decode(errors="replace")
        super().__init__(
            f"git object {name} {problem}",
            hint=BROKEN.format(name[:2], name[2:]) if _UNREADABLE in problem else GIVEN_BACK,
            object=name,
        )


def _damage(oid: ObjectID | RawObjectID, error: Exception) -> DamagedObject:
    why = " ".join(str(error).split())[:100] or type(error).__name__
    return DamagedObject(ObjectID(oid), f"{_UNREADABLE}: {why}")


class ObjectStore(Protocol):
    """What `DurableObjects`, `LimitedObjects` and `ReceivedObjects` have in common."""

    def __contains__(self, sha1: ObjectID) -> bool:
        """Check whether the object is there."""

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        """Return the object; raise KeyError if it is missing, DamagedObject if it is damaged."""

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content; raise as ``[]`` does."""

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        """Write the objects durably."""


class DurableObjects(DiskObjectStore):
    """dulwich's object store with crash-safe writing and fast reading."""

    durable: bool = True
    """Whether objects are synced to the disk; this protects against power loss only."""

    def __del__(self) -> None:
        # Stores are never closed explicitly; their packs stay open as long as the object lives.
        # An error about a damaged pack still holds a part of it.
        with suppress(BufferError):
            self.close()

    def __init__(self, path: str) -> None:
        super().__init__(path)
        # A walk along a thread reads the same trees at every step. They are shared: never
        # modify one.
        self._folders: dict[bytes, Tree] = {}
        self._packs = PackFolder(os.path.join(path, "pack"))
        self._is_packed = False

    def __getitem__(self, sha1: ObjectID | RawObjectID) -> ShaFile:
        folder = self._folders.get(sha1)
        if folder is not None:
            return folder
        kind, content = self.get_raw(sha1)
        try:
            found = ShaFile.from_raw_string(kind, content, sha1)
        except _DAMAGE as error:
            raise _damage(sha1, error) from error
        if isinstance(found, Tree) and len(content) <= _SMALL_BYTES:
            if len(self._folders) == _MOST_FOLDERS:
                self._folders.clear()
            self._folders[sha1] = found
        return found

    def get_raw(self, name: ObjectID | RawObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content, checked against its id.

        Raises:
            KeyError: it is not there.
            DamagedObject: it cannot be read, or has another content.
        """
        oid = sha_to_hex(RawObjectID(name)) if len(name) == _OID_BYTES else ObjectID(name)
        first, second = self._find_loose, self._find_packed
        if self._is_packed:
            # The last object was packed; in a long thread the next thousands are as well.
            first, second = second, first
        # An object that is damaged in one place may be whole in another; dulwich knows more places.
        return first(oid) or second(oid) or self._get_anywhere(oid)

    def get_midx(self) -> None:
        """Return no multi-pack index: each pack has its own, and looking for it costs a stat."""

    def _find_loose(self, oid: ObjectID) -> tuple[int, bytes] | None:
        """Read a loose object; None if it is missing or damaged.

        dulwich takes three times as long, and does not check the content against the name.
        """
        self._is_packed = False
        try:
            with open(self._get_shafile_path(oid), "rb", buffering=0) as file:
                compressed = file.read()
            most = self.loose_object_size_limit + _LONGEST_HEADER
            stream = zlib.decompressobj()
            whole = stream.decompress(compressed, most)
        except (OSError, ValueError, zlib.error):
            return None
        if not stream.eof or stream.unused_data:
            return None
        header, _end, content = whole.partition(b"\0")
        name, _space, size = header.partition(b" ")
        if name not in _KINDS or size != b"%d" % len(content) or _digest(whole) != oid:
            return None
        return _KINDS[name], content

    def _find_packed(self, oid: ObjectID) -> tuple[int, bytes] | None:
        found = self._packs.find(oid)
        self._is_packed = found is not None and _name(*found) == oid
        return found if self._is_packed else None

    def _get_anywhere(self, oid: ObjectID) -> tuple[int, bytes]:
        try:
            self._refuse_garbage(oid)
            kind, content = super().get_raw(oid)
            actual = _name(kind, content)
            if actual != oid:
                raise ChecksumMismatch(oid, actual)
        except _DAMAGE as error:
            raise _damage(oid, error) from error
        return kind, content

    def _refuse_garbage(self, oid: ObjectID) -> None:
        """Raise ValueError if the loose file goes on behind its object, which dulwich overlooks."""
        try:
            with open(self._get_shafile_path(oid), "rb") as file:
                stream = zlib.decompressobj()
                while not stream.eof and (piece := stream.unconsumed_tail or file.read(_PIECE)):
                    stream.decompress(piece, _PIECE)
                if not stream.eof or stream.unused_data or file.read(1):
                    raise ValueError("garbage at the end of the loose object")
        except OSError:
            return

    def add_object(self, obj: ShaFile) -> None:
        """Write one object."""
        self.add_objects([(obj, None)])

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,  # noqa: ARG002 - dulwich's signature
    ) -> None:
        """Write *objects* loose: first every content, then every name, then the directories.

        The file of an existing object is touched, or `git gc` might prune it before the ref that
        needs it has moved; its directory is synced too, since its writer may have been killed
        before doing so.

        Raises:
            OSError: an object could not be written; those already written stay, unreferenced.
        """
        needed = {self._get_shafile_path(obj.id): obj for obj, _path in objects}
        add_files(
            (
                (target, obj.as_legacy_object(compression_level=self.loose_compression_level))
                for target, obj in needed.items()
                if not self._is_freshened(obj.id, target)
            ),
            # In objects/ itself: git's prune looks there, and it is synced in any case.
            temporary_in=os.fspath(self.path),
            prefix="tmp_obj_",
            mode=_READ_ONLY,
            durable=self.durable,
        )
        if self.durable:
            loose = filter(os.path.exists, needed)
            sync_directories([os.fspath(self.path), *map(os.path.dirname, loose)])

    def _is_freshened(self, oid: ObjectID, target: str) -> bool:
        try:
            os.utime(target)
        except FileNotFoundError:
            return self._is_packed_and_freshened(oid)
        except PermissionError:
            # Another user's file in a shared store: write a new one, which is young.
            return False
        return True

    def _is_packed_and_freshened(self, oid: ObjectID) -> bool:
        for pack in self.packs:
            try:
                if oid in pack and _can_be_freshened(os.fspath(pack.data.path)):
                    os.utime(pack.data.path)
                    return True
            # Removed meanwhile, another user's, or damaged: write a loose copy.
            except (OSError, PackFileDisappeared, *_DAMAGE):
                continue
        return False


def disk_places(objects: ObjectStore) -> Iterator[DiskObjectStore]:
    """Yield the object directories behind *objects*, in the order in which they are searched."""
    for place in getattr(objects, "places", (objects,)):
        if isinstance(place, DiskObjectStore):
            yield place


def has_object(objects: ObjectStore, oid: Oid) -> bool:
    """Tell whether the object *oid* is there, damaged or not."""
    return ObjectID(oid.encode()) in objects


def get_tree(objects: ObjectStore, oid: ObjectID) -> Tree:
    """Return the tree *oid*.

    Raises:
        DamagedObject: it is missing, or is not a tree.
    """
    try:
        tree = objects[oid]
    except KeyError:
        raise DamagedObject(oid, "is missing") from None
    if not isinstance(tree, Tree):
        raise DamagedObject(oid, "is not a tree")
    return tree


def get_blob(objects: ObjectStore, oid: ObjectID) -> bytes:
    """Return the content of the blob *oid*.

    Raises:
        DamagedObject: it is missing, or is not a blob.
    """
    try:
        kind, content = objects.get_raw(oid)
    except KeyError:
        raise DamagedObject(oid, "is missing") from None
    if kind != Blob.type_num:
        raise DamagedObject(oid, "is not a blob")
    return content
