"""Packing without git, judged by git."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from store.conftest import Git
from store.killing import dies_at, moments_of
from store.story import Story, put_raw

from uwf_git.store.gc.loose_objects import list_loose_objects
from uwf_git.store.gc.pack_loose import pack_loose
from uwf_git.store.store import Store, open_store

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of a few steps."""
    told = Story(store, clock)
    for number in range(4):
        told.step(text=f"# Step {number}\r\n" * 9)
    return told


def loose(store: Store) -> list[str]:
    return sorted(oid.decode() for oid in list_loose_objects(f"{store.path}/objects"))


def all_objects(store: Store, git: Git) -> str:
    return git("cat-file", "--batch-check", "--batch-all-objects", cwd=Path(store.path))


def fsck(store: Store, git: Git) -> str:
    return git("fsck", "--strict", "--no-dangling", cwd=Path(store.path))


def test_git_finds_everything_in_the_pack(story: Story, store: Store, git: Git) -> None:
    before = all_objects(store, git)
    pack_loose(store)
    assert loose(store) == []
    assert all_objects(store, git) == before
    assert fsck(store, git) == ""
    (index,) = Path(store.path, "objects/pack").glob("*.idx")
    git("verify-pack", str(index), cwd=Path(store.path))
    assert "garbage: 0\n" in git("count-objects", "-v", cwd=Path(store.path))


def test_the_thread_goes_on_and_is_packed_again(story: Story, store: Store, git: Git) -> None:
    for _round in range(3):
        pack_loose(open_store(store.path))
        again = open_store(store.path)
        assert again.refs.find(f"refs/threads/{story.thread}") == story.head.commit
        story.step()
    assert len(list(Path(store.path, "objects/pack").glob("*.pack"))) == 3
    assert fsck(store, git) == ""


def test_a_store_that_was_open_meanwhile_reads_on(story: Story, store: Store) -> None:
    pack_loose(store)
    assert story.snapshot.record.depth == 4
    assert len(list(story.snapshot.walk_chain())) == 5


def test_what_a_step_has_written_and_not_yet_referenced_stays_loose(
    story: Story, store: Store, git: Git
) -> None:
    commit = story.write_step("writer", "not yet there")
    pack_loose(store)
    assert commit in loose(store)
    assert store.refs.advance(f"refs/threads/{story.thread}", seen=story.head.commit, to=commit)
    assert fsck(store, git) == ""


def test_nothing_loose_writes_no_pack(store: Store, story: Story) -> None:
    pack_loose(store)
    before = sorted(os.listdir(f"{store.path}/objects/pack"))
    pack_loose(store)
    assert sorted(os.listdir(f"{store.path}/objects/pack")) == before


def test_an_object_that_no_ref_needs_goes_after_two_weeks(story: Story, store: Store) -> None:
    oid = put_raw(store, "blob", b"of a step that was lost").decode()
    path = Path(store.path, "objects", oid[:2], oid[2:])
    pack_loose(store)
    assert loose(store) == [oid]
    os.utime(path, LONG_AGO)
    pack_loose(store)
    assert loose(store) == []


def test_packing_killed_anywhere_loses_nothing_and_can_be_done_again(
    story: Story, store: Store, git: Git
) -> None:
    pack_loose(store)
    for moment in itertools.count(1):
        story.step(text=f"text {moment}")
        before = all_objects(store, git)
        if not dies_at(moment, lambda: pack_loose(store)):
            break
        assert all_objects(store, git) == before
        assert story.snapshot.record.status == "ready"
        pack_loose(store)
        assert loose(store) == []
        assert all_objects(store, git) == before
    assert moment > 15
    assert fsck(store, git) == ""


def test_the_pack_and_its_index_are_on_the_disk_before_anything_goes(
    story: Story, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked by the order of the system calls."""
    durable = store._replace(config=store.config._replace(values={}))
    asked: list[str] = []
    for name in ("fsync", "replace", "unlink"):
        call = getattr(os, name)

        def tell(*args: object, _call: Callable[..., object] = call, _name: str = name) -> object:
            asked.append(_name)
            return _call(*args)

        monkeypatch.setattr(os, name, tell)
    pack_loose(durable)
    # The pack, its index, both names, the folder; only then the loose ones.
    assert asked[:5] == ["fsync", "fsync", "replace", "replace", "fsync"]
    assert set(asked[5:]) == {"unlink"}
    assert moments_of(lambda: pack_loose(durable)) == []
