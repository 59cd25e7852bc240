"""Objects that were read lately: many branches begin at one commit, and share most of a tree."""

from collections.abc import Callable, Iterable

from dulwich.objects import ObjectID, ShaFile, Tree

from uwf_git.store.objects.objects import ObjectStore

_MOST_BYTES = 8 * 1024 * 1024
_LONGEST_BYTES = 64 * 1024
# The approximate overhead of an object beside its content.
_OBJECT_BYTES = 200


class RecentObjects:
    """An object store that keeps small objects that it has read; what it keeps is bounded."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._kept: dict[ObjectID, tuple[int, bytes]] = {}
        # Those of them that were asked for as trees: they are shared, so never modify one.
        self._trees: dict[ObjectID, Tree] = {}
        self._size_bytes = 0

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self._kept or sha1 in self._objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        tree = self._trees.get(sha1)
        if tree is not None:
            return tree
        kept = self._kept.get(sha1)
        if kept is None:
            found = self._objects[sha1]
            self._keep(sha1, (found.type_num, found.as_raw_string()))
        else:
            found = ShaFile.from_raw_string(*kept, sha=sha1)
        if isinstance(found, Tree) and sha1 in self._kept:
            self._trees[sha1] = found
        return found

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        found = self._kept.get(name)
        if found is None:
            found = self._objects.get_raw(name)
            self._keep(name, found)
        return found

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        return self._objects.add_objects(objects, progress)

    def _keep(self, oid: ObjectID, found: tuple[int, bytes]) -> None:
        size_bytes = len(found[1])
        if size_bytes > _LONGEST_BYTES:
            return
        self._size_bytes += size_bytes + _OBJECT_BYTES
        if self._size_bytes > _MOST_BYTES:
            self._kept.clear()
            self._trees.clear()
            self._size_bytes = size_bytes + _OBJECT_BYTES
        self._kept[oid] = found
