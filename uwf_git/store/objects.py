"""Objects: git's blobs, trees and commits on the disk, written so that no kill can hurt.

Owns: how loose objects are written, and looking for them first. Reading them, packs and
alternates are dulwich's.
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
import zlib
from collections.abc import Callable, Iterable
from typing import Protocol

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_store import DiskObjectStore
from dulwich.objects import EmptyFileException, ObjectID, RawObjectID, ShaFile, Tree
from dulwich.pack import PackFileDisappeared

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import remove, sync_directories, write_temporary

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


def _name_of(obj: ShaFile) -> bytes:
    content = obj.as_raw_string()
    header = b"%s %d\0" % (obj.type_name, len(content))
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest().encode()


class DamagedObject(StoreDamaged):
    """A git object is missing, or its file does not hold what its id says."""

    code = "damaged-object"

    def __init__(self, oid: ObjectID, problem: str) -> None:
        super().__init__(
            f"git object {oid.decode(errors='replace')} {problem}",
            hint="see `git fsck`; another copy of this store can give it back: `git fetch`",
            object=oid.decode(errors="replace"),
        )


class ObjectStore(Protocol):
    """What the store needs of git objects: dulwich's disk and memory stores both have it."""

    def __contains__(self, sha1: ObjectID) -> bool:
        """Tell whether the object is there."""

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        """Give the object; KeyError if it is not there, DamagedObject if it is another."""

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

    def __getitem__(self, sha1: ObjectID | RawObjectID) -> ShaFile:
        folder = self._folders.get(sha1)
        if folder is not None:
            return folder
        found = self._find_loose(sha1) or self._get(sha1)
        if isinstance(found, Tree) and found.raw_length() <= _SMALL_BYTES:
            if len(self._folders) == _MOST_FOLDERS:
                self._folders.clear()
            self._folders[sha1] = found
        return found

    def _find_loose(self, oid: ObjectID | RawObjectID) -> ShaFile | None:
        """Look for a loose object first: dulwich would list all packs before it does."""
        try:
            found = self._get_loose_object(ObjectID(oid))
            # dulwich believes the name of a loose file.
            if found is None or _name_of(found) == oid:
                return found
        except (OSError, *_DAMAGE):
            pass
        # A pack may have it whole; if not, dulwich comes back here, and the error is told.
        return None

    def _get(self, oid: ObjectID | RawObjectID) -> ShaFile:
        try:
            return super().__getitem__(oid)
        except _DAMAGE as error:
            why = " ".join(str(error).split())[:100] or type(error).__name__
            raise DamagedObject(ObjectID(oid), f"cannot be read: {why}") from error

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
        the ref that needs it has moved.

        Raises:
            OSError: the machine would not let it be written; names already given stay, and
                harm nobody.
        """
        waiting: dict[str, str] = {}
        try:
            for obj, _path in objects:
                target = self._get_shafile_path(obj.id)
                if target not in waiting and not self._is_freshened(obj.id, target):
                    waiting[target] = write_temporary(
                        os.path.dirname(target),
                        obj.as_legacy_object(compression_level=self.loose_compression_level),
                        prefix="tmp_obj_",
                        durable=self.durable,
                    )
            for target, temporary in waiting.items():
                os.chmod(temporary, _READ_ONLY)
                os.replace(temporary, target)
        except BaseException:
            for temporary in waiting.values():
                remove(temporary)
            raise
        if self.durable:
            sync_directories(os.path.dirname(target) for target in waiting)

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
                if oid in pack:
                    os.utime(pack.data.path)
                    return True
            # Gone since, another user's, or damaged: a loose copy of our own is safe.
            except (OSError, PackFileDisappeared, *_DAMAGE):
                continue
        return False
