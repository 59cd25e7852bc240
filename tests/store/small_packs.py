"""Small packs, as steps write them, and what is in the packs of a store."""

import os
from collections.abc import Iterable

from dulwich.objects import Blob, ShaFile

from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.packing import list_own_packs
from uwf_git.store.store import Store

_QUICK = PackRights(durable=False)


def pack_folder(store: Store) -> str:
    """Return the folder of the packs of *store*."""
    return os.path.join(store.path, "objects", "pack")


def names_in(store: Store) -> list[str]:
    """List the files in the folder of packs."""
    return sorted(os.listdir(pack_folder(store)))


def packs_in(store: Store) -> list[str]:
    """List the packs, without their endings."""
    return [name.removesuffix(".pack") for name in names_in(store) if name.endswith(".pack")]


def write_small_pack(store: Store, objects: Iterable[ShaFile], *, size_bytes: int = 0) -> str:
    """Write a pack as a step does; return its path, without its ending.

    With *size_bytes* it has about that size.
    """
    filled = [*objects, *([Blob.from_string(os.urandom(size_bytes))] if size_bytes else [])]
    entries = [build_entry(obj) for obj in filled]
    return write_pack(pack_folder(store), entries, _QUICK, keep=False).path


def write_blobs(store: Store, count: int, *, each: int = 1) -> list[Blob]:
    """Write *count* packs of *each* blobs; return the blobs."""
    blobs = [Blob.from_string(os.urandom(40)) for _number in range(count * each)]
    for number in range(count):
        write_small_pack(store, blobs[number * each : (number + 1) * each])
    return blobs


def unpacked_in(store: Store) -> int:
    """Count the objects that steps wrote and nobody has packed since, kept ones left out."""
    packs = list_own_packs(pack_folder(store))
    return sum(pack.objects for pack in packs)
