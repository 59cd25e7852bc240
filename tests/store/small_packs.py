"""Packs and loose objects: small packs, what gc is due for, and locks that name nobody."""

import itertools
import os
import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, ShaFile

from uwf_git.store.git.config import set_config
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.packing import list_own_packs, pack_objects
from uwf_git.store.store import Store, open_store

# Small packs, as steps write them, and what is in the packs of a store.

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
    return sum(pack.objects for pack in list_own_packs(pack_folder(store)))


# git's own gc, run as a store runs it.


def gc(store: Store, *, auto: bool = False, environ: dict[str, str] | None = None) -> None:
    pack_objects(store, environ or os.environ, auto=auto)


def loose(store: Store) -> list[str]:
    """List the loose objects of a store."""
    return [path.parent.name + path.name for path in Path(store.path, "objects").glob("??/*")]


# Contents of a lock file that name no holder.

GARBAGE = [
    b"",
    b"\0" * 100,
    b"\xff\xfe\xfd",
    b"{",
    b"null",
    b"5",
    b'["pid", 7]',
    b"1" * 9_000,
    b'{"pid": 7}\n{"pid": 8}\n',
    b"[" * 9_000,
]


# Make a store that needs packing: fill the one folder from which all others are estimated.
#
# No ref needs the objects that are put there, so they stay loose. Whatever steps wrote is due too.

COUNT = 3


def make_due(path: str) -> set[str]:
    """Make the store at *path* due for packing, in the foreground; return the objects put there."""
    set_config(f"{path}/config", "gc.auto", "1")
    set_config(f"{path}/config", "gc.autoDetach", "false")
    numbered = (Blob.from_string(b"%d" % number) for number in itertools.count())
    sampled = (blob for blob in numbered if blob.id.startswith(b"17"))
    blobs = list(itertools.islice(sampled, COUNT))
    write_loose(open_store(path), blobs)
    return {blob.id.decode() for blob in blobs}


# Stores as they were written before each transition was a pack: every object in its own file.


def write_loose(store: Store, objects: Iterable[ShaFile]) -> None:
    """Write *objects* as loose files."""
    for obj in objects:
        path = loose_file(store, obj.id)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        whole = obj.as_raw_string()
        path.write_bytes(zlib.compress(b"%s %d\0" % (obj.type_name, len(whole)) + whole, 1))
        path.chmod(0o444)


def loosen(store: Store) -> None:
    """Turn all packs of *store* into loose files; it holds nothing in memory then."""
    with closing(DiskObjectStore(f"{store.path}/objects")) as objects:
        write_loose(store, [objects[oid] for pack in objects.packs for oid in pack])
    for path in Path(store.path, "objects", "pack").iterdir():
        path.unlink()
    forget(store)


def forget(store: Store) -> None:
    """Forget what *store* holds in memory, as in a new process."""
    assert isinstance(store.objects, DurableObjects)
    DurableObjects.__init__(store.objects, f"{store.path}/objects")


def lose(store: Store, oid: str | bytes) -> None:
    """Take the object *oid* out of the store."""
    loosen(store)
    loose_file(store, oid).unlink()


def loose_file(store: Store, oid: str | bytes) -> Path:
    """Return where the object *oid* lies, if it is loose."""
    name = oid if isinstance(oid, str) else oid.decode()
    return Path(store.path, "objects", name[:2], name[2:])


def damage(path: Path, content: bytes | bytearray) -> None:
    """Write *content* over a file of git's, which nobody may write."""
    path.chmod(0o644)
    path.write_bytes(content)
