"""Uniting, judged by git; killed at every moment, and after a power loss."""

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from conftest import Draws
from dulwich.objects import Blob
from dulwich.repo import Repo
from hypothesis import given
from hypothesis import strategies as st
from store.conftest import Git
from store.killing import dies_at
from store.power import Image, images_of, record
from store.small_packs import damage, names_in, pack_folder, packs_in, write_blobs, write_small_pack
from store.uniting import Work, check_whole, git_by, run_together

from uwf_git.store.git.config import set_config
from uwf_git.store.locks import hold_lock
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.packing import MOST_PACKS, SmallPack
from uwf_git.store.store import Store, open_store
from uwf_git.store.tidy import (
    choose_union,
    claim_start,
    find_union,
    pause_uniting,
    remove_stale_packs,
    unite_packs,
)

MANY = MOST_PACKS + 1
DAY_S = 24 * 3600


def small(size: int) -> SmallPack:
    return SmallPack(str(size), 1, size, 0)


@pytest.fixture
def blobs(store: Store) -> list[Blob]:
    """Write packs that have to be united, and return what is in them."""
    return write_blobs(store, MANY)


def fsck(store: Store, git: Git) -> str:
    return git("fsck", "--strict", "--no-dangling", cwd=Path(store.path))


def missing(store: Store, blobs: Iterable[Blob]) -> list[Blob]:
    """List which of *blobs* a new process, and dulwich, cannot read."""
    ours = DurableObjects(f"{store.path}/objects")
    with Repo(store.path) as theirs:
        return [
            blob
            for blob in blobs
            if blob.id not in ours
            or ours.get_raw(blob.id)[1] != blob.data
            or theirs.object_store.get_raw(blob.id)[1] != blob.data
        ]


@given(st.lists(st.integers(1, 10**6), max_size=60))
def test_what_stays_apart_triples_and_is_little(sizes: list[int]) -> None:
    packs = [small(size) for size in sorted(sizes)]
    chosen = choose_union(packs)
    assert chosen == packs[: len(chosen)]
    if len(packs) <= MOST_PACKS:
        assert chosen == []
        return
    smaller = sum(pack.size_bytes for pack in chosen)
    for pack in packs[len(chosen) :]:
        assert pack.size_bytes >= 2 * smaller
        smaller += pack.size_bytes
    assert len(packs) - len(chosen) <= 15


def test_packs_become_one_that_holds_everything_once(store: Store, git: Git) -> None:
    blobs = write_blobs(store, MANY, each=3)
    shared = [Blob.from_string(b"in two packs"), *blobs[:2]]
    write_small_pack(store, shared)
    assert unite_packs(store) == MANY + 1
    assert [Path(name).suffix for name in names_in(store)] == [".idx", ".pack"]
    assert missing(store, [*blobs, *shared]) == []
    (pack,) = packs_in(store)
    listed = git("verify-pack", "-v", f"{pack_folder(store)}/{pack}.idx", cwd=Path(store.path))
    assert listed.count(" blob ") == MANY * 3 + 1
    assert fsck(store, git) == ""
    assert unite_packs(store) == 0


def test_a_large_pack_is_not_copied_for_a_few_small_ones(store: Store) -> None:
    large = write_small_pack(store, [], size_bytes=100_000)
    write_blobs(store, MOST_PACKS)
    assert unite_packs(store) == MOST_PACKS
    assert len(packs_in(store)) == 2
    assert os.path.exists(f"{large}.pack")


def test_the_union_is_as_old_as_its_youngest_part(store: Store, blobs: list[Blob]) -> None:
    then = time.time() - 30 * DAY_S
    for number, pack in enumerate(packs_in(store)):
        os.utime(f"{pack_folder(store)}/{pack}.pack", (then + number, then + number))
    unite_packs(store)
    (pack,) = packs_in(store)
    assert abs(os.stat(f"{pack_folder(store)}/{pack}.pack").st_mtime - then - MOST_PACKS) < 1


def test_a_damaged_pack_stays_where_it_is(store: Store, blobs: list[Blob]) -> None:
    bad = write_small_pack(store, [Blob.from_string(b"bad")])
    path = Path(f"{bad}.pack")
    content = bytearray(path.read_bytes())
    content[14] ^= 1
    damage(path, content)
    assert unite_packs(store) == MANY
    assert len(packs_in(store)) == 2
    assert path.read_bytes() == content
    assert missing(store, blobs) == []


def test_a_kept_pack_is_left_alone_and_does_not_count(store: Store, blobs: list[Blob]) -> None:
    kept = packs_in(store)[0]
    Path(pack_folder(store), f"{kept}.keep").touch()
    assert unite_packs(store) == 0
    write_blobs(store, 1)
    assert unite_packs(store) == MANY
    assert kept in packs_in(store)


def test_nobody_waits_for_another_who_unites(store: Store, blobs: list[Blob]) -> None:
    with hold_lock(store.local_path("locks", "unite"), wait=False):
        assert unite_packs(store) == 0
        assert not claim_start(store)
    assert unite_packs(store) == MANY


def test_one_process_at_a_time_is_started(store: Store) -> None:
    assert claim_start(store)
    assert not claim_start(store)
    long_ago = time.time() - 60
    os.utime(store.local_path("locks", "unite"), (long_ago, long_ago))
    assert claim_start(store)


def test_when_it_is_at_work_the_next_may_be_started(store: Store) -> None:
    assert claim_start(store)
    unite_packs(store)
    assert claim_start(store)


def test_nobody_unites_or_is_started_while_the_store_is_packed(store: Store) -> None:
    write_blobs(store, MANY)
    claim_start(store)
    with pause_uniting(store):
        assert unite_packs(store) == 0
        assert not claim_start(store)
    assert claim_start(store)


def test_nobody_unites_beside_a_gc_of_git(store: Store, blobs: list[Blob]) -> None:
    lock = Path(store.path, "gc.pid")
    lock.write_text(f"{os.getpid()} {os.uname().nodename}")
    assert unite_packs(store) == 0
    lock.write_text(f"{2**22 + 1} {os.uname().nodename}")
    assert unite_packs(store) == MANY


def test_another_reader_that_was_open_reads_on(store: Store, blobs: list[Blob]) -> None:
    objects = DurableObjects(f"{store.path}/objects")
    with Repo(store.path) as repo:
        assert blobs[0].id in objects
        assert repo.object_store.get_raw(blobs[0].id)
        unite_packs(store)
        for blob in blobs:
            assert objects.get_raw(blob.id)[1] == blob.data
            assert repo.object_store.get_raw(blob.id)[1] == blob.data


def test_what_belongs_to_an_alternate_stays_there(store: Store, tmp_path: Path, git: Git) -> None:
    blobs = write_blobs(store, MANY)
    git("clone", "-q", "--bare", "--shared", store.path, "borrower", cwd=tmp_path)
    borrower = open_store(str(tmp_path / "borrower"))
    assert find_union(borrower) == []
    unite_packs(store)
    assert [blob.id in borrower.objects for blob in blobs] == [True] * MANY
    assert fsck(borrower, git) == ""


def test_in_a_shared_store_the_group_may_read_and_unite_as_well(store: Store) -> None:
    set_config(f"{store.path}/config", "core.sharedRepository", "group")
    shared = open_store(store.path)
    before = os.umask(0o077)
    try:
        write_blobs(store, MANY)
        assert unite_packs(shared) == MANY
    finally:
        os.umask(before)
    for name in names_in(shared):
        assert os.stat(f"{pack_folder(shared)}/{name}").st_mode & stat.S_IRGRP
    assert os.stat(shared.local_path("locks", "unite")).st_mode & 0o060 == 0o060


def test_killed_anywhere_it_loses_nothing_and_leaves_what_the_sweep_knows(
    store: Store, git: Git
) -> None:
    blobs: list[Blob] = []
    for moment in itertools.count(1):
        new = write_blobs(store, MANY)
        blobs += new
        if not dies_at(moment, partial(unite_packs, store)):
            break
        assert missing(store, new) == []
        unite_packs(store)
    assert moment > 20
    for name in names_in(store):
        os.utime(f"{pack_folder(store)}/{name}", (time.time() - 2 * DAY_S,) * 2)
    assert remove_stale_packs(store) > 10
    endings = [Path(name).suffix for name in names_in(store)]
    assert endings.count(".pack") == endings.count(".idx") == len(endings) / 2
    assert missing(store, blobs) == []
    assert fsck(store, git) == ""


def test_the_union_is_on_the_disk_before_a_source_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked by the order of the system calls."""
    write_blobs(store, MANY)
    durable = store._replace(config=store.config._replace(values={}))
    asked: list[str] = []
    for name in ("fsync", "replace", "unlink"):
        call = getattr(os, name)

        def tell(*args: object, _call: Callable[..., object] = call, _name: str = name) -> object:
            asked.append(_name)
            return _call(*args)

        monkeypatch.setattr(os, name, tell)
    unite_packs(durable)
    assert asked[:5] == ["fsync", "fsync", "replace", "replace", "fsync"]
    assert asked[5:] == ["unlink"] * 2 * MANY


def test_after_a_power_loss_every_object_is_in_a_whole_pack(store: Store) -> None:
    blobs = write_blobs(store, MANY)
    durable = store._replace(config=store.config._replace(values={}))
    events = record(store.path, partial(unite_packs, durable))
    wanted = {blob.id.decode() for blob in blobs}
    count = 0
    for images in images_of(events):
        for image in images:
            count += 1
            assert wanted <= set(readable(image))
    assert count > 100


def readable(image: Image) -> Iterable[str]:
    """List the objects that a git would find on a disk."""
    for path in image.list("objects/pack"):
        stem, ending = os.path.splitext(path)
        index, pack = image.find(path), image.find(f"{stem}.pack")
        if ending == ".idx" and index and pack and index[-40:-20] == pack[-20:]:
            for number in range(int.from_bytes(index[1028:1032], "big")):
                yield index[1032 + number * 20 : 1052 + number * 20].hex()


@pytest.mark.parametrize("beside", [None, git_by("repack", "-adq")], ids=["nobody", "git repack"])
def test_writers_uniters_and_readers_get_along(
    beside: Work | None, store: Store, git: Git, draws: Draws
) -> None:
    """The long form is test_unite_races.py."""
    run_together(store, draws.chance, range(6), beside=beside)
    check_whole(store, git)


def test_many_steps_leave_few_packs_and_each_object_is_copied_a_few_times() -> None:
    packs: list[SmallPack] = []
    copied = most = 0
    for _step in range(5000):
        packs.append(small(3000))
        chosen = choose_union(sorted(packs, key=lambda pack: pack.size_bytes))
        if chosen:
            size = sum(pack.size_bytes for pack in chosen)
            packs = [pack for pack in packs if pack not in chosen] + [small(size)]
            copied += size
        most = max(most, len(packs))
    assert most <= 20
    assert copied / (5000 * 3000) < 10
