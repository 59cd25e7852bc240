"""A store in memory; that it gives the answers of the disk is test_contract.py's business."""

from dulwich.objects import Blob

from uwf_git.store.memory import MemoryObjects, MemoryRefs
from uwf_git.store.refs import Oid
from uwf_git.store.store import memory_store

ONE = Oid("1" * 40)


def test_two_stores_know_nothing_of_each_other() -> None:
    one, other = memory_store(), memory_store()
    one.refs.create("refs/cas/a", ONE)
    one.objects.add_objects([(Blob.from_string(b"content"), None)])
    assert other.refs.names("refs/cas/") == []
    assert Blob.from_string(b"content").id not in other.objects


def test_refs_below_a_name_are_listed_without_it() -> None:
    refs = MemoryRefs()
    for name in ("refs/cas/b", "refs/cas/a", "refs/case"):
        refs.create(name, ONE)
    assert refs.names("refs/cas/") == ["a", "b"]


def test_an_object_that_is_changed_outside_stays_as_it_was() -> None:
    objects = MemoryObjects()
    blob = Blob.from_string(b"content")
    oid = blob.id
    objects.add_objects([(blob, None)])
    blob.data = b"another"
    assert objects[oid].as_raw_string() == b"content"
