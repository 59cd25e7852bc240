import os
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses
from store.conftest import Git
from store.story import Story

from uwf_git.store.gc.packing import count_files, pack_objects
from uwf_git.store.gc.tidy import pack_refs
from uwf_git.store.store import Store


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of a few steps."""
    told = Story(store, clock)
    for number in range(9):
        told.step(text=f"text {number}")
    return told


def test_store_is_smaller_afterwards(story: Story, store: Store, git: Git) -> None:
    before = count_files(store)
    assert (before.loose_objects, before.packs) == (0, 10)
    pack_refs(store)
    pack_objects(store, os.environ)
    after = count_files(store)
    assert after[:2] == (0, 1)
    assert after.size_bytes < before.size_bytes / 2
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def test_an_empty_store_can_be_packed(store: Store) -> None:
    pack_objects(store, os.environ)
    assert count_files(store)[:2] == (0, 0)


def test_without_git_nothing_is_packed(story: Story, store: Store) -> None:
    before = count_files(store)
    with refuses("no-git"):
        pack_objects(store, {"PATH": ""})
    assert count_files(store) == before


def test_bytes_are_counted_as_du_does(store: Store) -> None:
    before = count_files(store).size_bytes
    path = Path(store.path, "objects", "pack", "pack-1.pack")
    path.write_bytes(b"x" * 10_000)
    after = count_files(store)
    assert after.size_bytes - before == path.stat().st_blocks * 512
    assert after.packs == 1
