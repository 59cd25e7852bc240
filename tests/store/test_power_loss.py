"""Power that fails after a kill: what the dead did not force to the disk, the next one does."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, Tree
from store.power import Image, Seen, images_of, record
from store.uniting import commit_of
from store.whole_refs import check_refs, refs_in

from uwf_git.model.names import Oid
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import Store, create_store

NAME = "refs/threads/new"


def history() -> list[Blob | Tree | Commit]:
    """Return a commit after what it needs; the same ones every time."""
    return commit_of(1, None, b"content")


def put(store: Store) -> None:
    """Write the commit and point the ref at it, if it is not there already."""
    objects = history()
    store.objects.add_objects([(obj, None) for obj in objects])
    store.refs.create(NAME, Oid(objects[-1].id.decode()))


@pytest.fixture
def new_store(tmp_path: Path) -> Callable[[], Store]:
    """Make empty stores that wait for the disk."""
    made: list[Store] = []

    def make() -> Store:
        made.append(create_store(str(tmp_path / f"{len(made)}.git")))
        return made[-1]

    return make


def test_a_power_loss_after_a_kill_at_any_moment_leaves_whole_refs(
    new_store: Callable[[], Store],
) -> None:
    store = new_store()
    looks = sum(isinstance(event, Seen) for event in record(store.path, lambda: put(store)))
    count = 0
    for look in range(1, looks + 1):
        killed = new_store()
        put_it = partial(put, killed)
        events = record(killed.path, put_it, killed_at=look)
        is_there = Path(killed.path, NAME).exists()
        events += record(killed.path, put_it)
        for images in images_of(events):
            count += len(images)
            for image in images:
                check_refs(image, dict(refs_in(image)))
        # A ref that the dead one has moved is not moved again, and may be lost as it was.
        assert is_there or list(dict(refs_in(images[0]))) == [NAME], f"killed at look {look}"
    assert looks > 30
    print(f"{looks} kills, each with a power loss at every moment after: {count} images")  # noqa: T201 - for -rA


def test_a_store_that_was_made_survives_a_power_loss(tmp_path: Path) -> None:
    events = record(str(tmp_path), lambda: create_store(f"{tmp_path}/new/store.git"))
    *_before, (least, *_more) = images_of(events)
    assert least.find("new/store.git/HEAD") == b"ref: refs/heads/main\n"
    assert least.find("new/store.git/config")


def test_the_images_of_what_does_not_wait_for_the_disk_are_not_whole(
    new_store: Callable[[], Store],
) -> None:
    store = new_store()
    assert isinstance(store.objects, DurableObjects)
    store.objects.durable = False
    broken = 0
    for images in images_of(record(store.path, lambda: put(store))):
        broken += sum(map(is_broken, images))
    assert broken > 10


def is_broken(image: Image) -> bool:
    try:
        check_refs(image, dict(refs_in(image)))
    except AssertionError:
        return True
    return False
