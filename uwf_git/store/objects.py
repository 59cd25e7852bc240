"""Objects: git's blobs, trees and commits on the disk, written so that no kill can hurt.

Owns: how loose objects are written; where an object is looked for, and in which order. What
is in neither a usual loose file nor a usual pack (pack_file.py) is dulwich's to read, or to
call damaged: alternates, old formats.
Knows nothing of: nodes, threads, refs.
Always true: when ``add_objects`` is done, every object is on the disk under its name; a process
killed before leaves at worst ``tmp_obj_*`` files, which git's own prune sweeps. What is read
has the id that it was asked for by, or is told to be damaged.
Why not dulwich's ``add_object``: it leaves ``<object>.lock`` behind when killed, and that one
object can then never be written again.
"""

import hashlib
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterable
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
from uwf_git.store.durable import add_files, sync_directories
from uwf_git.store.pack_file import PackFolder

_READ_ONLY = 0o444

# What dulwich says of loose files and packs that are cut short or overwritten.
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

# Below a day, which is the least that packing_policy.py lets an unneeded object live.
_OLD_PACK_S = 12 * 3600

_OID_BYTES = 20
_LONGEST_HEADER = 32


def _digest(whole: bytes) -> bytes:
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest().encode()


def _name(kind: int, content: bytes) -> bytes:
    return _digest(b"%s %d\0%s" % (_NAMES.get(kind, b""), len(content), content))


def _can_be_freshened(pack: str) -> bool:
    """Tell whether making a pack young keeps what is in it.

    In one with a list of times (git's "cruft") that list counts. An old one a `git gc` may be
    about to drop, having found it old already: then a loose copy of our own is safe.
    """
    is_young = time.time() - os.stat(pack).st_mtime < _OLD_PACK_S
    return is_young and not os.path.exists(pack.removesuffix(".pack") + ".mtimes")


class DamagedObject(StoreDamaged):
    """A git object is missing, or its file does not hold what its id says."""

    code = "damaged-object"

    def __init__(self, oid: ObjectID, problem: str) -> None:
        super().__init__(
            f"git object {oid.decode(errors='replace')} {problem}",
            hint=GIVEN_BACK,
            object=oid.decode(errors="replace"),
        )


def _damage(oid: ObjectID | RawObjectID, error: Exception) -> DamagedObject:
    why = " ".join(str(error).split())[:100] or type(error).__name__
    return DamagedObject(ObjectID(oid), f"cannot be read: {why}")


class ObjectStore(Protocol):
    """What the store needs of git objects: dulwich's disk and memory stores both have it."""

    def __contains__(self, sha1: ObjectID) -> bool:
        """Tell whether the object is there."""

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        """Give the object; KeyError if it is not there, DamagedObject if it is another."""

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Give git's number of the object's kind and its content; raise as ``[]`` does."""

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        """Write the objects; when this returns, they are there for good."""


class DurableObjects(DiskObjectStore):
    """dulwich's object store, with loose objects written by temporary name and rename."""

    durable: bool = True
    """Whether objects are forced to the disk; a power loss is all that it guards against."""

    def __del__(self) -> None:
        # Nobody has to close a store: its packs are open for as long as somebody has it.
        self.close()

    def __init__(self, path: str) -> None:
        super().__init__(path)
        # A walk along a thread asks for the same folders at every step. What is handed out is
        # shared: nobody may change it.
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
        """Give git's number of the object's kind and its content, which has that id.

        Raises:
            KeyError: it is not there.
            DamagedObject: what is there in its place cannot be read, or is another.
        """
        oid = sha_to_hex(RawObjectID(name)) if len(name) == _OID_BYTES else ObjectID(name)
        first, second = self._find_loose, self._find_packed
        if self._is_packed:
            # As the last one was; and whoever reads a long thread asks for tens of thousands.
            first, second = second, first
        # What is damaged in one place may be whole in another; dulwich, which has more places
        # to look in, tells what is wrong if it is not.
        return first(oid) or second(oid) or self._get_anywhere(oid)

    def get_midx(self) -> None:
        """Give no index of several packs: each has its own, and looking for it costs a stat."""

    def _find_loose(self, oid: ObjectID) -> tuple[int, bytes] | None:
        """Read a loose object if it is there, and whole.

        dulwich's way of doing this takes three times as long, and believes the file's name.
        """
        self._is_packed = False
        try:
            with open(self._get_shafile_path(oid), "rb", buffering=0) as file:
                compressed = file.read()
            most = self.loose_object_size_limit + _LONGEST_HEADER
            whole = zlib.decompressobj().decompress(compressed, most)
        except (OSError, ValueError, zlib.error):
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
            kind, content = super().get_raw(oid)
            actual = _name(kind, content)
            if actual != oid:
                raise ChecksumMismatch(oid, actual)
        except _DAMAGE as error:
            raise _damage(oid, error) from error
        return kind, content

    def add_object(self, obj: ShaFile) -> None:
        """Write one object."""
        self.add_objects([(obj, None)])

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,  # noqa: ARG002 - dulwich's signature
    ) -> None:
        """Write *objects* loose: first every content, then every name, then the directories.

        An object that is there already is made young again, or `git gc` might prune it before
        the ref that needs it has moved. Its directory is forced to the disk like the others:
        who wrote it may have been killed before he came to that, or be about to do it.

        Raises:
            OSError: the machine would not let it be written; names already given stay, and
                harm nobody.
        """
        needed = {self._get_shafile_path(obj.id): obj for obj, _path in objects}
        add_files(
            (
                (target, obj.as_legacy_object(compression_level=self.loose_compression_level))
                for target, obj in needed.items()
                if not self._is_freshened(obj.id, target)
            ),
            # In the folder above all others, where git's prune looks as well, and which is
            # forced to the disk in any case, for the folders in it.
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
            # Another user's file in a shared store: write our own, which is young.
            return False
        return True

    def _is_packed_and_freshened(self, oid: ObjectID) -> bool:
        for pack in self.packs:
            try:
                if oid in pack and _can_be_freshened(os.fspath(pack.data.path)):
                    os.utime(pack.data.path)
                    return True
            # Gone since, another user's, or damaged: a loose copy of our own is safe.
            except (OSError, PackFileDisappeared, *_DAMAGE):
                continue
        return False
