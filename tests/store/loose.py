"""Stores as they were written before each transition was a pack: every object in its own file."""

import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from dulwich.object_store import DiskObjectStore
from dulwich.objects import ShaFile

from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import Store


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


def damage(path: Path, content: bytes) -> None:
    """Write *content* over a file of git's, which nobody may write."""
    path.chmod(0o644)
    path.write_bytes(content)
