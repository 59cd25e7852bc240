"""Incoming objects: what a remote sent, in a folder of its own until it has been checked.

Each transfer has a folder below `<git dir>/uwf/incoming/`; the next transfer removes what a killed
one left. `move_into_store` stores all its objects durably, so no ref is durable before its objects.
Why a folder of its own: git does the same (quarantine); and dulwich, killed while it completes a
pack, leaves a `.idx.lock` behind that would block the same pack for ever.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, cast

from dulwich.objects import ObjectID, RawObjectID, sha_to_hex
from dulwich.pack import generate_unpacked_objects

from uwf_git.store.disk.durable import remove_file, sync_directories
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.git.shared_mode import is_shared
from uwf_git.store.objects.incoming_pack import IncomingPack, count_objects
from uwf_git.store.objects.keep_file import KeepFile
from uwf_git.store.objects.limited import LimitedObjects
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.objects.pack_limits import PackLimits
from uwf_git.store.objects.pack_writer import choose_name
from uwf_git.store.store import Store

_LOCK = ".lock"
_OURS = re.compile(r"[0-9a-f]{16}\.lock")
_PACK, _INDEX = "received.pack", "received.idx"
_PACK_HEAD_BYTES = 12
_READ_ONLY = 0o444

_DEFAULT = PackLimits()


class Incoming:
    """One transfer."""

    def __init__(self, store: Store, folder: str, limits: PackLimits) -> None:
        self._store, self._folder, self._limits = store, folder, limits
        os.makedirs(os.path.join(folder, "pack"))
        os.makedirs(os.path.join(folder, "info"))
        with open(os.path.join(folder, "info", "alternates"), "wb") as file:
            file.write(os.fsencode(os.path.join(store.path, "objects")) + b"\n")
        self.objects = DurableObjects(folder)
        """The received objects, and behind them those of the store."""
        self._head = b""
        self._written = 0
        self.spool: IO[bytes] = open(os.path.join(folder, _PACK), "w+b")  # noqa: SIM115 (closed with the transfer)
        """What was written so far; whoever provides the folder closes it."""

    def write(self, content: bytes) -> int:
        """Append bytes to the pack.

        Raises:
            Refused: it is too long, or claims too many objects.
        """
        if len(self._head) < _PACK_HEAD_BYTES:
            self._head += content[:_PACK_HEAD_BYTES]
            # What is no pack at all is for `unpack` to tell.
            with suppress(ValueError):
                self._limits.check_count(count_objects(self._head))
        self._written += len(content)
        self._limits.check_pack(self._written)
        return self.spool.write(content)

    def unpack(self) -> None:
        """Index what was written as a pack; check every object in it, and add missing bases.

        Raises:
            Refused: it is beyond the limits.
            the errors of a broken pack, which `transport_errors.failures` knows.
        """
        if not self._written:
            return
        self.spool.flush()
        index = os.path.join(self._folder, _INDEX)
        checksum = IncomingPack(self.spool, self._limits, self._find_base).index(index)
        self.spool.close()
        if count_objects(self._head) == 0:
            return
        name = os.path.join(self.objects.pack_dir, f"pack-{checksum.hex()}")
        for path, ending in ((os.path.join(self._folder, _PACK), ".pack"), (index, ".idx")):
            os.chmod(path, _READ_ONLY)
            os.replace(path, name + ending)

    def _find_base(self, name: bytes) -> tuple[int, bytes]:
        most = self._limits.most_blob_bytes
        objects = LimitedObjects(self._store.objects, most_blob_bytes=most)
        return objects.get_raw(sha_to_hex(RawObjectID(name)))

    def move_into_store(self, until_needed: ExitStack) -> None:
        """Move the received packs into the store, durably.

        git and uwf leave them alone until *until_needed* ends: the caller moves the refs before.
        """
        self.objects.close()
        target = os.path.join(self._store.path, "objects", "pack")
        os.makedirs(target, exist_ok=True)
        durable = self._store.config.get_flag("uwf.fsync", default=True)
        names = os.listdir(self.objects.pack_dir)
        for name in names:
            if name.endswith(".idx"):
                here = os.path.join(self.objects.pack_dir, name.removesuffix(".idx"))
                there = choose_name(target)
                keep = KeepFile(there, share=is_shared(self._store.config))
                until_needed.callback(keep.release)
                # For git a pack exists as soon as its index does, so move the index last.
                for ending in (".pack", ".idx"):
                    if durable:
                        _sync(here + ending)
                    os.replace(here + ending, there + ending)
        if durable and names:
            sync_directories([target])


@contextmanager
def receive_objects(store: Store, limits: PackLimits = _DEFAULT) -> Iterator[Incoming]:
    """Provide a folder for one transfer within *limits*, and remove it afterwards."""
    place = store.local_path("incoming")
    os.makedirs(place, exist_ok=True)
    _remove_stale(place)
    with ExitStack() as stack:
        folder = _claim(stack, place)
        try:
            incoming = Incoming(store, folder, limits)
            stack.callback(incoming.spool.close)
            yield incoming
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
        container = cast("DurableObjects", source).by_dulwich
        unpacked = generate_unpacked_objects(container, todo, ofs_delta=False, reuse_deltas=False)
        incoming.objects.by_dulwich.add_pack_data(len(needed), unpacked)
