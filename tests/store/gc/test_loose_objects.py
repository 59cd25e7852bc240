import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from store.conftest import Git
from store.loose import lose
from store.story import Story, put_raw

from uwf_git.store.gc import loose_objects
from uwf_git.store.gc.loose_objects import (
    list_loose_objects,
    prune_loose,
    remove_packed_twice,
)
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import Store

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def objects(store: Store) -> DurableObjects:
    """Return the objects of the store."""
    assert isinstance(store.objects, DurableObjects)
    return store.objects


def pruned(store: Store, objects: DurableObjects, *tips: ObjectID) -> int:
    loose = list_loose_objects(str(objects.path))
    return prune_loose(store.path, objects, loose, tips=tips, before_s=time.time() - 1000)


def old_stray(store: Store, objects: DurableObjects) -> ObjectID:
    oid = put_raw(store, "blob", b"nobody needs it")
    os.utime(objects.loose_path(oid), LONG_AGO)
    return oid


def test_loose_objects_are_listed_and_nothing_else(store: Store, objects: DurableObjects) -> None:
    assert list_loose_objects(str(objects.path)) == []
    oids = {put_raw(store, "blob", bytes([number])) for number in range(40)}
    folder = os.path.dirname(objects.loose_path(min(oids)))
    Path(folder, "tmp_obj_1").touch()
    assert set(list_loose_objects(str(objects.path))) == oids


def test_what_is_packed_as_well_goes(
    store: Store, objects: DurableObjects, clock: Callable[[], int], git: Git
) -> None:
    Story(store, clock)
    loose = set(list_loose_objects(str(objects.path)))
    git("repack", "-q", cwd=Path(store.path))
    stray = put_raw(store, "blob", b"only loose")
    assert remove_packed_twice(objects, [*loose, stray]) == {stray}
    assert list_loose_objects(str(objects.path)) == [stray]


def test_a_pack_that_cannot_give_it_is_not_relied_on(
    store: Store, objects: DurableObjects, clock: Callable[[], int], git: Git
) -> None:
    Story(store, clock)
    loose = set(list_loose_objects(str(objects.path)))
    git("repack", "-q", cwd=Path(store.path))
    (pack,) = Path(store.path, "objects/pack").glob("*.pack")
    pack.chmod(0o644)
    content = bytearray(pack.read_bytes())
    content[30:-20] = os.urandom(len(content) - 50)
    pack.write_bytes(content)
    assert remove_packed_twice(objects, loose) == loose


def test_what_no_ref_needs_goes_when_it_is_old(
    store: Store, objects: DurableObjects, clock: Callable[[], int]
) -> None:
    tip = ObjectID(Story(store, clock).head.commit.encode())
    needed = set(list_loose_objects(str(objects.path)))
    for oid in needed:
        os.utime(objects.loose_path(oid), LONG_AGO)
    young = put_raw(store, "blob", b"a step has just written it")
    old_stray(store, objects)
    assert pruned(store, objects, tip) == 1
    assert set(list_loose_objects(str(objects.path))) == {*needed, young}


def test_nothing_goes_while_something_needed_is_damaged(
    store: Store, objects: DurableObjects, clock: Callable[[], int]
) -> None:
    tip = ObjectID(Story(store, clock).head.commit.encode())
    lose(store, tip)
    stray = old_stray(store, objects)
    assert pruned(store, objects, tip) == 0
    assert stray in objects


@pytest.mark.parametrize("root", ["index", "logs", "worktrees", "shallow"])
def test_nothing_goes_where_something_else_than_refs_may_need_it(
    store: Store, objects: DurableObjects, root: str
) -> None:
    old_stray(store, objects)
    Path(store.path, root).mkdir()
    assert pruned(store, objects) == 0
    Path(store.path, root).rmdir()
    assert pruned(store, objects) == 1


def test_what_was_wanted_again_meanwhile_stays(
    store: Store, objects: DurableObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = old_stray(store, objects)

    def want_it(*_args: object) -> set[ObjectID]:
        os.utime(objects.loose_path(stray))
        return set()

    monkeypatch.setattr(loose_objects, "list_reachable", want_it)
    assert pruned(store, objects) == 0
    assert stray in objects
