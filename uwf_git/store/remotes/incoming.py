"""Incoming objects: what a remote sent, in a folder of its own until it has been checked.

Each transfer has a folder below `<git dir>/uwf/incoming/`; the next transfer removes what a killed
one left. `move_into_store` stores all its objects durably, so no ref is durable before its objects.
Why a folder of its own: git does the same (quarantine); and dulwich, killed while it completes a
pack, leaves a `.idx.lock` behind that would block the same pack for ever.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, cast

from dulwich.objects import ObjectID
from dulwich.pack import generate_unpacked_objects

from uwf_git.store.disk.durable import remove_file, sync_directories
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.store import Store

_LOCK = ".lock"
_OURS = re.compile(r"[0-9a-f]{16}\.lock")


class Incoming:
    """One transfer."""

    def __init__(self, store: Store, folder: str, spool: IO[bytes]) -> None:
        self._store = store
        self._spool = spool
        os.makedirs(os.path.join(folder, "pack"))
        os.makedirs(os.path.join(folder, "info"))
        with open(os.path.join(folder, "info", "alternates"), "wb") as file:
            file.write(os.fsencode(os.path.join(store.path, "objects")) + b"\n")
        self.objects = DurableObjects(folder)
        """The received objects, and behind them those of the store."""

    def write(self, content: bytes) -> int:
        """Append bytes to the pack."""
        return self._spool.write(content)

    def unpack(self) -> None:
        """Index what was written as a pack, checked against its checksum.

        Raises:
            the errors of dulwich for a broken pack, which `transport_errors.failures` knows.
        """
        if self._spool.tell():
            self._spool.seek(0)
            self.objects.add_thin_pack(self._spool.read, None)

    def move_into_store(self) -> None:
        """Move the received packs into the store, durably."""
        self.objects.close()
        target = os.path.join(self._store.path, "objects", "pack")
        os.makedirs(target, exist_ok=True)
        durable = self._store.config.get_flag("uwf.fsync", default=True)
        # For git a pack exists as soon as its index does, so move the index last.
        names = sorted(os.listdir(self.objects.pack_dir), key=lambda name: name.endswith(".idx"))
        for name in names:
            path = os.path.join(self.objects.pack_dir, name)
            if durable:
                _sync(path)
            os.replace(path, os.path.join(target, name))
        if durable and names:
            sync_directories([target])


@contextmanager
def receive_objects(store: Store) -> Iterator[Incoming]:
    """Provide a folder for one transfer, and remove it afterwards."""
    place = store.local_path("incoming")
    os.makedirs(place, exist_ok=True)
    _remove_stale(place)
    with ExitStack() as stack:
        folder = _claim(stack, place)
        try:
            spool = stack.enter_context(tempfile.TemporaryFile(dir=place))
            yield Incoming(store, folder, spool)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            remove_file(folder + _LOCK)


def _claim(stack: ExitStack, place: str) -> str:
    while True:
        folder = os.path.join(place, os.urandom(8).hex())
        if stack.enter_context(hold_lock(folder + _LOCK, wait=False)) is not None:
            return folder


def _remove_stale(place: str) -> None:
    """Remove the folders of dead processes: their locks are free."""
    for name in os.listdir(place):
        # Other names are not ours: the folder may be a link to anywhere.
        if _OURS.fullmatch(name) is None:
            continue
        path = os.path.join(place, name)
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                remove_file(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_objects(source: ObjectStore, needed: Sequence[ObjectID], incoming: Incoming) -> None:
    """Copy the objects *needed* from *source* into *incoming*.

    Raises:
        DamagedObject, KeyError: one of them cannot be read.
    """
    if needed:
        todo = [(oid, None) for oid in needed]
        container = cast("DurableObjects", source)
        unpacked = generate_unpacked_objects(container, todo, ofs_delta=False, reuse_deltas=False)
        incoming.objects.add_pack_data(len(needed), unpacked)
