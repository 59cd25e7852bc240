"""Write a pack with its index, and read it back before it gets its name.

A pack is visible only once it and its index are on the disk and checked. Its name is that of its
content, so a pack that replaces another of the same name is the same.
Why not dulwich's `add_pack`: it renames the pack before the index is there, takes a lock for the
index that a killed process leaves for ever, and syncs no folder.
Source: gitformat-pack(5); git's index-pack.
"""

import io
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import IO

from dulwich.errors import ApplyDeltaError, ChecksumMismatch
from dulwich.object_format import SHA1
from dulwich.objects import ObjectID, hex_to_sha
from dulwich.pack import (
    REF_DELTA,
    PackData,
    PackIndexer,
    UnpackedObject,
    UnresolvedDeltas,
    write_pack_data,
    write_pack_index_v2,
)

from uwf_git.errors import Conflict, StoreDamaged, StoreFailed
from uwf_git.store.disk.durable import remove_file, sync_directories
from uwf_git.store.gc.pack_plan import Planned
from uwf_git.store.objects.objects import DurableObjects

_READ_ONLY = 0o444
# git's own prefix: its prune removes what a killed process left.
_PREFIX = "tmp_pack_"
# The objects of a store are small: it takes no longer.
_BEST = 9
_PIECE_BYTES = 1024 * 1024

# The errors of dulwich for bytes that are no pack, or another than was written.
_UNREADABLE = (
    ApplyDeltaError,
    AssertionError,
    ChecksumMismatch,
    EOFError,
    LookupError,
    UnresolvedDeltas,
    ValueError,
    zlib.error,
)


class PackingOvertaken(Conflict):
    """An object disappeared while it was being packed."""

    code = "packing-overtaken"

    def __init__(self, oid: ObjectID) -> None:
        super().__init__(
            f"git object {oid.decode()} disappeared while it was being packed",
            hint="another program packs the same store; nothing was lost: try again later",
            object=oid.decode(),
        )


def _pack_unreadable(path: str) -> StoreFailed:
    return StoreFailed(
        f"{path} does not read back as it was written; it was removed",
        code="pack-unreadable",
        hint="nothing was lost, but check the disk, and the machine's memory",
        path=path,
    )


def write_checked_pack(objects: DurableObjects, plan: Mapping[ObjectID, Planned]) -> None:
    """Write the pack of *plan* durably.

    Raises:
        PackingOvertaken: an object is missing.
        StoreFailed: the pack does not read back as it was written.
        OSError: the system refused a write.
    """
    folder = os.path.join(objects.path, "pack")
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, _PREFIX + os.urandom(8).hex())
    index = temporary + "_idx"
    try:
        checksum = _write_objects(temporary, objects, plan)
        _write_index(temporary, index, objects, plan, checksum)
        name = os.path.join(folder, f"pack-{checksum.hex()}")
        for path in (temporary, index):
            os.chmod(path, _READ_ONLY)
        if not os.path.exists(name + ".idx"):
            # The index last: git ignores a pack without one.
            os.replace(temporary, name + ".pack")
            os.replace(index, name + ".idx")
        if objects.durable:
            sync_directories([folder])
    finally:
        remove_file(temporary)
        remove_file(index)


def _write_objects(path: str, objects: DurableObjects, plan: Mapping[ObjectID, Planned]) -> bytes:
    with open(path, "xb") as file:
        piece = bytearray()

        def write(chunk: bytes | bytearray | memoryview) -> int:
            piece.extend(chunk)
            if len(piece) > _PIECE_BYTES:
                file.write(piece)
                piece.clear()
            return len(chunk)

        _entries, checksum = write_pack_data(
            write,
            _records(objects, plan),
            SHA1,
            num_records=len(plan),
            compression_level=_BEST,
        )
        file.write(piece)
        _sync_file(file, objects)
    return checksum


def _sync_file(file: IO[bytes], objects: DurableObjects) -> None:
    file.flush()
    if objects.durable:
        os.fsync(file.fileno())


def _records(objects: DurableObjects, plan: Mapping[ObjectID, Planned]) -> Iterator[UnpackedObject]:
    for oid, planned in plan.items():
        sha = hex_to_sha(oid)
        if planned.base is not None and planned.delta is not None:
            yield UnpackedObject(
                REF_DELTA,
                delta_base=hex_to_sha(planned.base),
                decomp_chunks=[planned.delta],
                sha=sha,
            )
            continue
        try:
            kind, content = objects.get_raw(oid)
        except (KeyError, StoreDamaged) as error:
            raise PackingOvertaken(oid) from error
        yield UnpackedObject(kind, decomp_chunks=[content], sha=sha)


def _write_index(
    pack: str,
    path: str,
    objects: DurableObjects,
    plan: Mapping[ObjectID, Planned],
    checksum: bytes,
) -> None:
    """Write the index of *pack*, after a check that it has exactly the objects of *plan*."""
    try:
        with PackData(pack, object_format=SHA1) as written:
            written.check()
            entries = sorted(PackIndexer.for_pack_data(written))
    except _UNREADABLE as error:
        raise _pack_unreadable(pack) from error
    if {sha for sha, _offset, _crc in entries} != {hex_to_sha(oid) for oid in plan}:
        raise _pack_unreadable(pack)
    content = io.BytesIO()
    write_pack_index_v2(content, entries, checksum)
    with open(path, "xb") as file:
        file.write(content.getbuffer())
        _sync_file(file, objects)
