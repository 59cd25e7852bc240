"""Incoming objects: what a remote sent, kept apart until it has been looked at.

Owns: a folder for each transfer below `<git dir>/uwf/incoming/`, and taking its pack in.
Knows nothing of: connections, refs.
Always true: nothing of a transfer is in the store before `take_in`, and then all of it is, on the
disk; so no ref is durable before its objects. What a killed transfer left is swept by the next.
Why apart: git does the same (quarantine); and dulwich, killed while it completes a pack, leaves a
`.idx.lock` behind that would keep the very same pack out for ever.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from uwf_git.store.durable import remove, sync_directories
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.objects import DurableObjects
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
        """What came, over what the store has."""

    def write(self, content: bytes) -> int:
        """Take the next bytes of a pack."""
        return self._spool.write(content)

    def unpack(self) -> None:
        """Read what was written as a pack; every object is checked against the pack's checksum.

        Raises:
            whatever dulwich says of a pack that is none (transport.py knows what).
        """
        if self._spool.tell():
            self._spool.seek(0)
            self.objects.add_thin_pack(self._spool.read, None)

    def take_in(self) -> None:
        """Put what came into the store, durably."""
        self.objects.close()
        target = os.path.join(self._store.path, "objects", "pack")
        os.makedirs(target, exist_ok=True)
        durable = self._store.config.get_flag("uwf.fsync", default=True)
        # A pack is there for git from the moment that its index is.
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
    """Make a place for one transfer, and remove it afterwards."""
    place = store.local_path("incoming")
    os.makedirs(place, exist_ok=True)
    _sweep(place)
    with ExitStack() as stack:
        folder = _claim(stack, place)
        try:
            spool = stack.enter_context(tempfile.TemporaryFile(dir=place))
            yield Incoming(store, folder, spool)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            remove(folder + _LOCK)


def _claim(stack: ExitStack, place: str) -> str:
    while True:
        folder = os.path.join(place, os.urandom(8).hex())
        if stack.enter_context(hold_lock(folder + _LOCK, wait=False)) is not None:
            return folder


def _sweep(place: str) -> None:
    """Remove the folders whose makers are dead: their locks are free."""
    for name in os.listdir(place):
        # Nothing but ours, wherever somebody made the folder lead.
        if _OURS.fullmatch(name) is None:
            continue
        path = os.path.join(place, name)
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                remove(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
