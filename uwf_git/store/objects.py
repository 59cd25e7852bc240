"""Objects: git's blobs, trees and commits on the disk, written so that no kill can hurt.

Owns: how loose objects are written. Reading, packs and alternates are dulwich's.
Knows nothing of: nodes, threads, refs.
Always true: when ``add_objects`` is done, every object is on the disk under its name; a process
killed before leaves at worst ``tmp_obj_*`` files, which git's own prune sweeps.
Why not dulwich's ``add_object``: it leaves ``<object>.lock`` behind when killed, and that one
object can then never be written again.
"""

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from dulwich.object_store import DiskObjectStore
from dulwich.objects import ObjectID, ShaFile

from uwf_git.store.durable import remove, sync_directories, write_temporary

_READ_ONLY = 0o444


class ObjectStore(Protocol):
    """What the store needs of git objects: dulwich's disk and memory stores both have it."""

    def __contains__(self, sha1: ObjectID) -> bool:
        """Tell whether the object is there."""

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        """Give the object; KeyError if it is not there."""

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
            if oid in pack:
                try:
                    os.utime(pack.data.path)
                except OSError:
                    return False
                return True
        return False
