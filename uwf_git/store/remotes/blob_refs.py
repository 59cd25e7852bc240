"""Refs of a remote that lead to blobs, which are sent and never stored here."""

from collections.abc import Iterable, Mapping
from typing import cast

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob

from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.exchange import Parcel


def name_blob(content: bytes) -> Oid:
    return Oid(Blob.from_string(content).id.decode())


def hold_blobs(contents: Iterable[bytes]) -> ObjectStore:
    objects = MemoryObjectStore()
    objects.add_objects([(Blob.from_string(each), None) for each in contents])
    return cast("ObjectStore", objects)


def build_parcel(changes: Mapping[str, bytes | None]) -> Parcel:
    """Return the parcel that lets refs lead to blobs; None deletes a ref."""
    blobs = {ref: Blob.from_string(each) for ref, each in changes.items() if each is not None}
    return Parcel(
        {ref: Oid(blobs[ref].id.decode()) if ref in blobs else None for ref in changes},
        [blob.id for blob in blobs.values()],
    )
