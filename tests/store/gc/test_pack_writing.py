"""Writing packs; git judges them in test_pack_without_git.py, which kills at any moment too."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob, ObjectID
from dulwich.pack import write_pack_data
from refusing import refuses
from store.loose import loosen, write_loose
from store.story import Story

from uwf_git.store.gc import pack_writing
from uwf_git.store.gc.loose_objects import list_loose_objects, remove_loose_objects
from uwf_git.store.gc.pack_plan import BLOB, Planned, plan_pack
from uwf_git.store.gc.pack_writing import PackingOvertaken, write_checked_pack
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import Store

Chunk = bytes | bytearray | memoryview


@pytest.fixture
def objects(store: Store, clock: Callable[[], int]) -> DurableObjects:
    """Return the objects of a thread."""
    Story(store, clock).step()
    loosen(store)
    assert isinstance(store.objects, DurableObjects)
    return store.objects


@pytest.fixture
def plan(store: Store, objects: DurableObjects) -> dict[ObjectID, Planned]:
    """Plan to pack them all."""
    tips = [ObjectID(oid.encode()) for oid in filter(None, map(store.refs.find, names(store)))]
    return plan_pack(objects, set(list_loose_objects(str(objects.path))), tips)


def names(store: Store) -> list[str]:
    return [f"refs/threads/{name}" for name in store.refs.names("refs/threads/")]


def packs(store: Store) -> list[str]:
    return sorted(os.listdir(f"{store.path}/objects/pack"))


def test_a_pack_gives_back_what_was_packed(
    store: Store, objects: DurableObjects, plan: dict[ObjectID, Planned]
) -> None:
    before = {oid: objects.get_raw(oid) for oid in plan}
    write_checked_pack(objects, plan)
    remove_loose_objects(objects, plan)
    again = DurableObjects(os.fspath(objects.path))
    assert {oid: again.get_raw(oid) for oid in plan} == before
    assert [Path(name).suffix for name in packs(store)] == [".idx", ".pack"]
    assert all(
        Path(store.path, "objects/pack", name).stat().st_mode & 0o222 == 0 for name in packs(store)
    )


def test_the_same_pack_again_is_the_same_file(
    store: Store, objects: DurableObjects, plan: dict[ObjectID, Planned]
) -> None:
    write_checked_pack(objects, plan)
    before = {name: Path(store.path, "objects/pack", name).stat() for name in packs(store)}
    write_checked_pack(objects, plan)
    after = {name: Path(store.path, "objects/pack", name).stat() for name in packs(store)}
    assert {name: stat.st_ino for name, stat in after.items()} == {
        name: stat.st_ino for name, stat in before.items()
    }


def test_disappeared_object_is_a_conflict(store: Store, objects: DurableObjects) -> None:
    with pytest.raises(PackingOvertaken, match="1111"):
        write_checked_pack(objects, {ObjectID(b"1" * 40): Planned(BLOB)})
    assert packs(store) == []


def test_a_pack_that_holds_something_else_is_thrown_away(
    store: Store, objects: DurableObjects
) -> None:
    one, other = Blob.from_string(b"one"), Blob.from_string(b"other")
    write_loose(store, [one, other])
    lie = Planned(BLOB, one.id, b"\x03\x01\x01x")
    with refuses("pack-unreadable"):
        write_checked_pack(objects, {one.id: Planned(BLOB), other.id: lie})
    assert packs(store) == []


@pytest.mark.parametrize("flipped", [1, 4, 9, 30])
def test_bytes_that_change_on_their_way_to_the_disk_are_noticed(
    flipped: int,
    store: Store,
    objects: DurableObjects,
    plan: dict[ObjectID, Planned],
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def write_badly(to: Callable[[Chunk], int], *args: Any, **fields: Any) -> Any:
        seen = 0

        def flip(chunk: Chunk) -> int:
            nonlocal seen
            seen += 1
            return to(bytes([chunk[0] ^ 1, *chunk[1:]]) if seen == flipped else chunk)

        return write_pack_data(flip, *args, **fields)

    monkeypatch.setattr(pack_writing, "write_pack_data", write_badly)
    with refuses("pack-unreadable"):
        write_checked_pack(objects, plan)
    assert packs(store) == []
