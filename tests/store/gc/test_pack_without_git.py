"""Packing without git, judged by git."""

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile
from store.conftest import Git
from store.killing import dies_at, moments_of
from store.loose import loosen
from store.small_packs import packs_in, write_small_pack
from store.story import Story, put_raw

from uwf_git.store.gc.loose_objects import list_loose_objects
from uwf_git.store.gc.pack_without_git import pack_without_git
from uwf_git.store.gc.small_packs import list_own_packs, list_packed_names
from uwf_git.store.store import Store, open_store

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture(params=["loose", "packed"])
def story(request: pytest.FixtureRequest, store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of a few steps, as older versions wrote them and as steps do."""
    told = Story(store, clock)
    for number in range(4):
        told.step(text=f"# Step {number}\r\n" * 9)
    if request.param == "loose":
        loosen(store)
    return told


def loose(store: Store) -> list[str]:
    return sorted(oid.decode() for oid in list_loose_objects(f"{store.path}/objects"))


def all_objects(store: Store, git: Git) -> str:
    return git("cat-file", "--batch-check", "--batch-all-objects", cwd=Path(store.path))


def fsck(store: Store, git: Git) -> str:
    return git("fsck", "--strict", "--no-dangling", cwd=Path(store.path))


def test_git_finds_everything_in_the_pack(story: Story, store: Store, git: Git) -> None:
    before = all_objects(store, git)
    pack_without_git(store)
    assert loose(store) == []
    assert all_objects(store, git) == before
    assert fsck(store, git) == ""
    (index,) = Path(store.path, "objects/pack").glob("*.idx")
    git("verify-pack", str(index), cwd=Path(store.path))
    assert "garbage: 0\n" in git("count-objects", "-v", cwd=Path(store.path))


def test_the_thread_goes_on_and_is_packed_again(story: Story, store: Store, git: Git) -> None:
    for _round in range(3):
        pack_without_git(open_store(store.path))
        again = open_store(store.path)
        assert again.refs.find(f"refs/threads/{story.thread}") == story.head.commit
        story.step()
    assert len(packs_in(store)) == 4
    assert len(own(store)) == 1
    assert fsck(store, git) == ""


def test_a_store_that_was_open_meanwhile_reads_on(story: Story, store: Store) -> None:
    pack_without_git(store)
    assert story.snapshot.record.depth == 4
    assert len(list(story.snapshot.walk_chain())) == 5


def test_what_a_step_has_written_and_not_yet_referenced_stays(
    story: Story, store: Store, git: Git
) -> None:
    commit = story.write_step("writer", "not yet there")
    pack_without_git(store)
    assert store.refs.advance(f"refs/threads/{story.thread}", seen=story.head.commit, to=commit)
    assert fsck(store, git) == ""


def test_what_no_ref_needs_keeps_its_age_and_goes_with_its_pack(
    story: Story, store: Store, git: Git
) -> None:
    strays = [Blob.from_string(b"stray %d" % number) for number in range(3)]
    whole = [store.objects[ObjectID(story.head.commit.encode())], *strays[:2]]
    mixed = write_small_pack(store, whole)
    alone = write_small_pack(store, strays[2:])
    then = time.time() - 3 * 24 * 3600
    os.utime(f"{mixed}.pack", (then, then))
    pack_without_git(store)
    assert not os.path.exists(f"{mixed}.pack")
    assert os.path.exists(f"{alone}.pack")
    (left,) = set(own(store)) - {os.path.basename(alone)}
    assert left_of(store, left) == {blob.id for blob in strays[:2]}
    assert abs(os.stat(f"{store.path}/objects/pack/{left}.pack").st_mtime - then) < 1

    pack_without_git(store)
    assert set(own(store)) == {left, os.path.basename(alone)}
    os.utime(f"{store.path}/objects/pack/{left}.pack", LONG_AGO)
    pack_without_git(store)
    assert own(store) == [os.path.basename(alone)]
    assert fsck(store, git) == ""


def test_nothing_is_pruned_that_something_else_than_a_ref_may_need(
    story: Story, store: Store
) -> None:
    stray = write_small_pack(store, [Blob.from_string(b"stray")])
    os.utime(f"{stray}.pack", LONG_AGO)
    Path(store.path, "index").touch()
    pack_without_git(store)
    assert own(store) == [os.path.basename(stray)]


def test_a_kept_pack_is_passed_and_packed_when_it_is_let_go(
    story: Story, store: Store, git: Git
) -> None:
    story.step(text="the newest")
    kept = newest(store)
    Path(f"{kept}.keep").touch()
    pack_without_git(store)
    assert len(packs_in(store)) == 2
    assert os.path.basename(kept) in packs_in(store)
    Path(f"{kept}.keep").unlink()
    pack_without_git(store)
    assert len(packs_in(store)) == 2
    assert own(store) == []
    assert fsck(store, git) == ""


def test_a_damaged_pack_stays(story: Story, store: Store) -> None:
    path = write_small_pack(store, [Blob.from_string(b"stray"), *commits(store, story)])
    content = bytearray(Path(f"{path}.pack").read_bytes())
    content[14] ^= 1
    Path(f"{path}.pack").chmod(0o644)
    Path(f"{path}.pack").write_bytes(content)
    pack_without_git(store)
    assert own(store) == [os.path.basename(path)]


def newest(store: Store) -> str:
    """Return the pack that was written last."""
    packs = Path(store.path, "objects/pack").glob("*.pack")
    return str(max(packs, key=lambda path: path.stat().st_mtime_ns)).removesuffix(".pack")


def own(store: Store) -> list[str]:
    """List the packs that steps wrote."""
    folder = f"{store.path}/objects/pack"
    return sorted(os.path.basename(pack.path) for pack in list_own_packs(folder))


def left_of(store: Store, pack: str) -> set[bytes]:
    names = list_packed_names(f"{store.path}/objects/pack/{pack}")
    return {name.hex().encode() for name in names}


def commits(store: Store, story: Story) -> list[ShaFile]:
    return [store.objects[ObjectID(story.head.commit.encode())]]


def test_nothing_new_writes_no_pack(store: Store, story: Story) -> None:
    pack_without_git(store)
    before = sorted(os.listdir(f"{store.path}/objects/pack"))
    pack_without_git(store)
    assert sorted(os.listdir(f"{store.path}/objects/pack")) == before


def test_an_object_that_no_ref_needs_goes_after_two_weeks(story: Story, store: Store) -> None:
    oid = put_raw(store, "blob", b"of a step that was lost").decode()
    path = Path(store.path, "objects", oid[:2], oid[2:])
    pack_without_git(store)
    assert loose(store) == [oid]
    os.utime(path, LONG_AGO)
    pack_without_git(store)
    assert loose(store) == []


def test_packing_killed_anywhere_loses_nothing_and_can_be_done_again(
    story: Story, store: Store, git: Git
) -> None:
    pack_without_git(store)
    for moment in itertools.count(1):
        for number in range(3):
            story.step(text=f"text {moment} {number}")
        before = all_objects(store, git)
        if not dies_at(moment, lambda: pack_without_git(store)):
            break
        assert all_objects(store, git) == before
        assert story.snapshot.record.status == "ready"
        pack_without_git(store)
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
    pack_without_git(durable)
    # The pack, its index, both names, the folder; only then the loose ones.
    assert asked[:5] == ["fsync", "fsync", "replace", "replace", "fsync"]
    assert set(asked[5:]) == {"unlink"}
    assert moments_of(lambda: pack_without_git(durable)) == []
