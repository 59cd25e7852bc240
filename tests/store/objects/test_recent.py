"""What was read lately is not read again; everything else is as in the store."""

from collections.abc import Iterable

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from fresh_store import fresh_store

from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.strict import RecentObjects


class _Counting:
    """An object store that counts what is read."""

    def __init__(self) -> None:
        self.objects: ObjectStore = fresh_store().objects
        self.reads: list[ObjectID] = []

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self.objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        self.reads.append(sha1)
        return self.objects[sha1]

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        self.reads.append(name)
        return self.objects.get_raw(name)

    def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]]) -> object:
        return self.objects.add_objects(objects)


def put(objects: RecentObjects, content: bytes) -> ObjectID:
    blob = Blob.from_string(content)
    objects.add_objects([(blob, None)])
    return blob.id


def test_a_small_object_is_read_once() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    oid = put(objects, b"words")

    assert oid in objects
    assert [objects.get_raw(oid) for _ in range(3)] == [(3, b"words")] * 3
    assert objects[oid] == Blob.from_string(b"words")
    assert below.reads == [oid]


def test_an_object_that_was_parsed_is_not_read_again() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    oid = put(objects, b"words")

    assert objects[oid] == objects[oid]
    assert objects.get_raw(oid) == (3, b"words")
    assert below.reads == [oid]


def test_large_objects_are_not_kept_and_small_ones_not_without_end() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    large = put(objects, b"x" * 70_000)
    many = [put(objects, bytes([number]) * 60_000) for number in range(200)]

    for oid in (large, large, *many, many[0]):
        objects.get_raw(oid)

    assert below.reads == [large, large, *many, many[0]]


def test_what_is_missing_is_missing() -> None:
    objects = RecentObjects(fresh_store().objects)
    oid = ObjectID(b"1" * 40)

    assert oid not in objects
    with pytest.raises(KeyError):
        objects.get_raw(oid)


def test_a_tree_is_parsed_once() -> None:
    objects = RecentObjects(_Counting())
    tree = Tree()
    tree[b"name"] = 0o100644, put(objects, b"words")
    objects.add_objects([(tree, None)])
    raw = objects.get_raw(tree.id)

    assert objects[tree.id] is objects[tree.id]
    assert objects[tree.id] == tree
    assert objects.get_raw(tree.id) == raw
