"""Write a small pack of whole objects: durable, and never seen before it is.

Both files are forced to the disk under temporary names, then renamed, the index last: git and
uwf ignore a pack without one. A killed writer leaves at worst `tmp_pack_*` files, which git's
prune removes, or a pack without an index. The name of a pack is drawn by lot: of two equal
packs the older could be on git's list of what to remove, and would take the younger with it.
Source: gitformat-pack(5).
"""

import functools
import hashlib
import json
import os
import stat
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from dulwich.objects import ObjectID, ShaFile, hex_to_sha

from uwf_git.errors import StoreFailed
from uwf_git.store.durable import add_files, remove_file, sync_directories
from uwf_git.store.locks import free_lock, hold_lock, parse_object, take_lock
from uwf_git.store.objects.pack_file import FAR, INDEX, INDEX_HEAD, OID_BYTES, PACK, ByteCache
from uwf_git.surroundings import read_process_start

# `.keep` files: git and our uniting leave the pack beside one alone until its writer is done.
#
# `git repack -ad` lists the packs, reads the refs, and then removes what it listed: a pack whose
# ref moves in between would be lost. So the `.keep` is there from before the pack has its name
# until the ref has moved. Its writer holds a flock on it: what a dead writer left is known, and
# swept. Source: git-index-pack(1), --keep; collect_pack_filenames in git's builtin/repack.c.

KEEP = ".keep"
_WRITER = "uwf"
_MOST_BYTES = 1000
_OLD_S = 24 * 3600
_GROUP = stat.S_IRGRP | stat.S_IWGRP


class KeepFile:
    """The `.keep` of one new pack, held by this process."""

    def __init__(self, pack: str, *, share: bool) -> None:
        """Make the `.keep` beside *pack*, a path without its ending that nobody else uses."""
        self._path = pack + KEEP
        self._pid = os.getpid()
        self._descriptor: int | None = None
        try:
            # Nobody holds it; the sweep of another process may look at it for a moment.
            self._descriptor = descriptor = take_lock(self._path, wait=True)
            if descriptor is not None:
                if share:
                    os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | _GROUP)
                os.write(descriptor, _describe_process(self._pid))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove the file and its lock; nothing happens a second time, or in a forked child."""
        descriptor, self._descriptor = self._descriptor, None
        # The file is the parent's, and the child's copy of the lock is closed (locks.py).
        if descriptor is None or self._pid != os.getpid():
            return
        remove_file(self._path)
        free_lock(descriptor)

    def __del__(self) -> None:
        # The writer has given up: its thread has ended, or its store is closed.
        self.release()


def remove_dead_keep(path: str) -> bool:
    """Remove the `.keep` at *path* if a dead writer of packs left it; return whether that was so.

    What git, people or a living writer hold stays; so does for a day what another machine wrote,
    whose locks may not be visible here.
    """
    try:
        with hold_lock(path, wait=False, make=False) as descriptor:
            if descriptor is None or not _is_left(descriptor):
                return False
            remove_file(path)
            return True
    except (OSError, StoreFailed):
        # Another user's, no file, or on a disk that cannot be written.
        return False


def is_kept(pack: str) -> bool:
    """Check whether *pack* has a `.keep` of anybody: for a listed pack the answer stays true."""
    return os.path.lexists(pack + KEEP)


def _is_left(descriptor: int) -> bool:
    content = parse_object(os.pread(descriptor, _MOST_BYTES, 0))
    if content.get("writer") != _WRITER:
        return False
    is_here = content.get("host") == os.uname().nodename
    return is_here or time.time() - os.fstat(descriptor).st_mtime > _OLD_S


@functools.lru_cache(maxsize=1)
def _describe_process(pid: int) -> bytes:
    """Return what this process writes into its `.keep` files, for people and for the sweep."""
    start, host = read_process_start(pid), os.uname().nodename
    return json.dumps({"writer": _WRITER, "pid": pid, "start": start, "host": host}).encode()


# Write the index of a pack, version 2.
#
# Source: gitformat-pack(5), "Version 2 pack-*.idx files support packs larger than 4 GiB".


def format_index(
    *, names: bytes, crcs: Sequence[int], offsets: Sequence[int], pack_sum: bytes
) -> Iterator[bytes | memoryview]:
    """Return the index of a pack with *names* of 20 bytes each, in the order of *offsets*."""
    order = sorted(range(len(offsets)), key=lambda at: _name(names, at))
    ordered = b"".join(_name(names, at) for at in order)
    _check_unique(ordered)
    return _with_digest(
        [
            INDEX_HEAD,
            _pack("I", _fan_out(ordered)),
            ordered,
            _pack("I", (crcs[at] for at in order)),
            *_pack_offsets([offsets[at] for at in order]),
            pack_sum,
        ]
    )


def _with_digest(parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()


def _fan_out(ordered: bytes) -> list[int]:
    fan_out = [0] * 256
    for at in range(0, len(ordered), OID_BYTES):
        fan_out[ordered[at]] += 1
    return list(accumulate(fan_out))


def _pack_offsets(offsets: Sequence[int]) -> tuple[bytes, bytes]:
    far = [offset for offset in offsets if offset >= FAR]
    numbers = iter(range(len(far)))
    near = (FAR | next(numbers) if offset >= FAR else offset for offset in offsets)
    return _pack("I", near), _pack("Q", far)


def _name(names: bytes, at: int) -> bytes:
    return names[at * OID_BYTES : (at + 1) * OID_BYTES]


def _check_unique(ordered: bytes) -> None:
    for at in range(OID_BYTES, len(ordered), OID_BYTES):
        name = ordered[at : at + OID_BYTES]
        if name == ordered[at - OID_BYTES : at]:
            raise ValueError(f"the pack has the object {name.hex()} twice")


def _pack(kind: str, numbers: Iterable[int]) -> bytes:
    packed = array(kind, numbers)
    if sys.byteorder == "little":
        packed.byteswap()
    return packed.tobytes()


TEMPORARY = "tmp_pack_"
"""The prefix of unfinished files; `git prune` knows it."""

_HEAD = struct.Struct(">4sII")
_MOST_TRIES = 5


class Entry(NamedTuple):
    oid: bytes

    crc: int

    content: bytes | memoryview
    """Kind, size, and the compressed object; no delta."""


class PackRights(NamedTuple):
    durable: bool = True
    """They are forced to the disk."""

    share: bool = False
    """A group may read them (core.sharedRepository), whatever the umask."""


class NewPack(NamedTuple):
    path: str

    pack_bytes: bytes
    index_bytes: bytes
    keep: KeepFile | None


# Threads of one workflow begin with the same twenty nodes.
_BUILT: ByteCache[ObjectID, Entry] = ByteCache(1024 * 1024, largest=64 * 1024)


def build_entry(obj: ShaFile) -> Entry:
    entry = _BUILT.get(obj.id)
    if entry is None:
        whole = obj.as_raw_string()
        compressed = zlib.compress(whole, zlib.Z_BEST_SPEED)
        content = format_entry_head(obj.type_num, len(whole)) + compressed
        entry = Entry(hex_to_sha(obj.id), zlib.crc32(content), content)
        _BUILT.put(obj.id, entry, len(content))
    return entry


def choose_name(folder: str) -> str:
    """Return a path for a new pack in *folder*, without its ending, that nobody else uses."""
    return os.path.join(folder, f"pack-{os.urandom(20).hex()}")


def write_pack(folder: str, entries: Sequence[Entry], rights: PackRights, *, keep: bool) -> NewPack:
    """Write the pack of *entries*, each object once, and its index into *folder*.

    With *keep*, a `.keep` lies beside it, from before it has its name until it is released.
    """
    pack, index = _build(entries)
    for _try in range(_MOST_TRIES - 1):
        # Suppressed: `git prune --expire=now` removes the temporary files of the living too.
        with suppress(FileNotFoundError):
            return _write(folder, pack, index, rights, keep=keep)
    return _write(folder, pack, index, rights, keep=keep)


def _build(entries: Sequence[Entry]) -> tuple[bytes, bytes]:
    offsets, at = array("Q"), _HEAD.size
    for entry in entries:
        offsets.append(at)
        at += len(entry.content)
    head = _HEAD.pack(b"PACK", 2, len(entries))
    pack = b"".join(_with_digest([head, *(entry.content for entry in entries)]))
    index = format_index(
        names=b"".join(entry.oid for entry in entries),
        crcs=[entry.crc for entry in entries],
        offsets=offsets,
        pack_sum=pack[-OID_BYTES:],
    )
    return pack, b"".join(index)


def _write(folder: str, pack: bytes, index: bytes, rights: PackRights, *, keep: bool) -> NewPack:
    path = choose_name(folder)
    kept = KeepFile(path, share=rights.share) if keep else None
    try:
        names = add_files(
            [(path + PACK, pack), (path + INDEX, index)],
            temporary_in=folder,
            prefix=TEMPORARY,
            mode=0o444,
            durable=rights.durable,
        )
        if rights.share:
            for name in names:
                os.chmod(name, stat.S_IMODE(os.stat(name).st_mode) | stat.S_IRGRP)
        if rights.durable:
            sync_directories([folder])
    except BaseException:
        # What has the name of the pack; the index first, or the pack would be missing behind it.
        remove_file(path + INDEX)
        remove_file(path + PACK)
        if kept is not None:
            kept.release()
        raise
    return NewPack(path, pack, index, kept)


def format_entry_head(kind: int, size: int) -> bytes:
    """Return kind and size of an entry; as `read_entry_head` reads them."""
    head = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    head.append(byte)
    return bytes(head)
