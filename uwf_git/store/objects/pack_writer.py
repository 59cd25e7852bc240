"""Write a small pack of whole objects: durable, and never seen before it is.

Both files are forced to the disk under temporary names, then renamed, the index last: git and uwf
ignore a pack without one. A killed writer leaves at worst `tmp_pack_*` files, which git's prune
removes, or a pack without an index. The name of a pack is drawn by lot: of two equal packs the
older could be on git's list of what to remove, and would take the younger with it.
Source: gitformat-pack(5).
"""

import hashlib
import io
import os
import stat
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dulwich.objects import ObjectID, ShaFile, hex_to_sha

from uwf_git.store.disk.durable import add_files, remove_file, sync_directories
from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.objects.keep_file import KeepFile
from uwf_git.store.objects.pack_file import INDEX, PACK
from uwf_git.store.objects.pack_index import format_index

TEMPORARY = "tmp_pack_"
"""The prefix of unfinished files; `git prune` knows it."""

_HEAD = struct.Struct(">4sII")
_VERSION = 2
_READ_ONLY = 0o444
_FAST = 1
_MOST_TRIES = 5


class Entry(NamedTuple):
    """An object as it stands in a pack."""

    oid: bytes
    """20 bytes."""

    crc: int
    """The CRC-32 of the content."""

    content: bytes | memoryview
    """Kind, size, and the compressed object; no delta."""


class PackRights(NamedTuple):
    """How packs are written in a store."""

    durable: bool = True
    """They are forced to the disk."""

    share: bool = False
    """A group may read them (core.sharedRepository), whatever the umask."""


class NewPack(NamedTuple):
    """A pack that was written."""

    path: str
    """Without its ending."""

    pack_bytes: bytes
    index_bytes: bytes
    keep: KeepFile | None


# Threads of one workflow begin with the same twenty nodes.
_BUILT: ByteCache[ObjectID, Entry] = ByteCache(1024 * 1024, largest=64 * 1024)


def build_entry(obj: ShaFile) -> Entry:
    """Return *obj* as it stands in a pack."""
    entry = _BUILT.get(obj.id)
    if entry is None:
        whole = obj.as_raw_string()
        content = _format_head(obj.type_num, len(whole)) + zlib.compress(whole, _FAST)
        entry = Entry(hex_to_sha(obj.id), zlib.crc32(content), content)
        _BUILT.put(obj.id, entry, len(content))
    return entry


def choose_name(folder: str) -> str:
    """Return a path for a new pack in *folder*, without its ending, that nobody else uses."""
    return os.path.join(folder, f"pack-{os.urandom(20).hex()}")


def write_pack(folder: str, entries: Sequence[Entry], rights: PackRights, *, keep: bool) -> NewPack:
    """Write the pack of *entries*, each object once, and its index into *folder*.

    With *keep*, a `.keep` lies beside it, from before it has its name until it is released.

    Raises:
        ValueError: an object is there twice.
        OSError: the system refused a write; nothing is left of the pack.
    """
    pack, index = _build(entries)
    for _try in range(_MOST_TRIES - 1):
        try:
            return _write(folder, pack, index, rights, keep=keep)
        except FileNotFoundError:
            # `git prune --expire=now` removes the temporary files of the living too.
            continue
    return _write(folder, pack, index, rights, keep=keep)


def _build(entries: Sequence[Entry]) -> tuple[bytes, bytes]:
    """Return the contents of the pack of *entries* and of its index."""
    offsets, at = array("Q"), _HEAD.size
    for entry in entries:
        offsets.append(at)
        at += len(entry.content)
    parts: list[bytes | memoryview] = [_HEAD.pack(b"PACK", _VERSION, len(entries))]
    parts += [entry.content for entry in entries]
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    checksum = digest.digest()
    index = io.BytesIO()
    for part in format_index(
        names=b"".join(entry.oid for entry in entries),
        crcs=[entry.crc for entry in entries],
        offsets=offsets,
        pack_sum=checksum,
    ):
        index.write(part)
    return b"".join([*parts, checksum]), index.getvalue()


def _write(folder: str, pack: bytes, index: bytes, rights: PackRights, *, keep: bool) -> NewPack:
    path = choose_name(folder)
    with _undone(path):
        kept = KeepFile(path, share=rights.share) if keep else None
        try:
            names = add_files(
                [(path + PACK, pack), (path + INDEX, index)],
                temporary_in=folder,
                prefix=TEMPORARY,
                mode=_READ_ONLY,
                durable=rights.durable,
            )
            if rights.share:
                for name in names:
                    os.chmod(name, stat.S_IMODE(os.stat(name).st_mode) | stat.S_IRGRP)
            if rights.durable:
                sync_directories([folder])
        except BaseException:
            if kept is not None:
                kept.release()
            raise
    return NewPack(path, pack, index, kept)


@contextmanager
def _undone(path: str) -> Iterator[None]:
    """Remove what has the name of the pack if it could not be finished."""
    try:
        yield
    except BaseException:
        # The index first, or the pack would be missing behind it.
        remove_file(path + INDEX)
        remove_file(path + PACK)
        raise


def _format_head(kind: int, size: int) -> bytes:
    """Return kind and size of an entry; as `read_entry_head` reads them."""
    head = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    head.append(byte)
    return bytes(head)
