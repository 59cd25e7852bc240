from pathlib import Path

from dulwich.objects import Blob, ObjectID, RawObjectID, sha_to_hex
from dulwich.pack import generate_unpacked_objects

from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.strict import DulwichObjects
from uwf_git.store.store import Store, create_store

MISSING = ObjectID(b"1" * 40)


def written(store: Store, content: bytes) -> ObjectID:
    blob = Blob.from_string(content)
    store.objects.add_objects([(blob, None)])
    return blob.id


def seen_by_dulwich(store: Store) -> DulwichObjects:
    assert isinstance(store.objects, DurableObjects)
    return store.objects.by_dulwich


def test_dulwich_reads_what_ours_read_also_through_an_alternate(
    store: Store, tmp_path: Path
) -> None:
    first = written(store, b"one")
    other = create_store(str(tmp_path / "other.git"))
    Path(other.path, "objects/info/alternates").write_text(f"{store.path}/objects\n")
    second = written(other, b"two")

    objects = seen_by_dulwich(other)

    assert [objects[oid].as_raw_string() for oid in (first, second)] == [b"one", b"two"]
    assert [first in objects, second in objects, MISSING in objects] == [True, True, False]
    told = generate_unpacked_objects(objects, [(first, None), (second, None)])
    assert {sha_to_hex(RawObjectID(each.sha())) for each in told} == {first, second}
