"""Limited objects: refuse an object that is too large before its content is in memory.

A few kilobytes on the wire can be a blob of gigabytes, so the size is read from the header first.
"""

from collections.abc import Callable, Iterable

from dulwich.objects import ObjectID, ShaFile

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.size import find_size

_KIB = 1024
_MIB = 1024 * _KIB

# Two levels of one character keep the trees of a million nodes below 50 KB.
_TREE_BYTES = 4 * _MIB
_COMMIT_BYTES = _MIB


def _oversized_object(kind: str, oid: str, *, size_bytes: int, most_bytes: int) -> StoreDamaged:
    return StoreDamaged(
        f"{kind} {oid} takes {render_size(size_bytes)}, and at most "
        f"{render_size(most_bytes)} may be pushed here",
        code="oversized-object",
        hint="keep large files elsewhere and name them in the text; the server's owner sets "
        "the limit for blobs: git config uwf.maxBlobSize",
        object=oid,
        size=size_bytes,
    )


class LimitedObjects:
    """The objects of a store; reading one that is too large raises `StoreDamaged`."""

    def __init__(self, objects: ObjectStore, *, most_blob_bytes: int) -> None:
        self._objects = objects
        self._most_blob_bytes = most_blob_bytes

    def __contains__(self, sha1: ObjectID) -> bool:
        return find_size(self._objects, sha1) is not None

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        self._check_size(sha1)
        return self._objects[sha1]

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content.

        Raises:
            StoreDamaged: it is larger than its kind may be.
        """
        self._check_size(name)
        return self._objects.get_raw(name)

    def _check_size(self, oid: ObjectID) -> None:
        size = find_size(self._objects, oid)
        if size is None:
            return
        most = most_bytes_of(size.kind, most_blob_bytes=self._most_blob_bytes)
        if size.size_bytes > most:
            raise _oversized_object(
                size.kind,
                oid.decode(errors="replace"),
                size_bytes=size.size_bytes,
                most_bytes=most,
            )

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        """Write the objects into the store."""
        return self._objects.add_objects(objects, progress)


def most_bytes_of(kind: str, *, most_blob_bytes: int) -> int:
    """Return how large an object of this *kind* may be."""
    return {"blob": most_blob_bytes, "tree": _TREE_BYTES}.get(kind, _COMMIT_BYTES)


def render_size(size_bytes: int) -> str:
    """Return a size as git config spells it, rounded up: 5 bytes, 12k, 101m."""
    for unit, letter in ((_MIB * _KIB, "g"), (_MIB, "m"), (_KIB, "k")):
        if size_bytes >= unit:
            return f"{-(-size_bytes // unit)}{letter}"
    return f"{size_bytes} bytes"
