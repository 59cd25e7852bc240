"""Packing refs, judged by what git makes of the result."""

import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob
from store.conftest import Git
from store.killing import dies_at, in_child
from store.small_packs import names_in, pack_folder, write_small_pack
from store.story import THREAD, Story

from uwf_git.store import locks as ref_lock
from uwf_git.store.locks import break_dead_locks
from uwf_git.store.objects.pack_writer import KeepFile, build_entry
from uwf_git.store.refs import BadPackedRefs
from uwf_git.store.store import Store
from uwf_git.store.tidy import pack_refs, read_whole_entries, remove_stale_packs

NAME = f"refs/threads/{THREAD}"
OTHER = "refs/archive/01J7K9M2XNPQR5VWBCDF8G3H4V"


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread, whose first commit has an archive ref of another thread as well."""
    told = Story(store, clock)
    assert store.refs.create(OTHER, told.head.commit)
    return told


def refs_of(store: Store, git: Git) -> str:
    return git("for-each-ref", cwd=Path(store.path))


def loose_refs(store: Store) -> list[str]:
    root = Path(store.path)
    return sorted(
        str(path.relative_to(root)) for path in (root / "refs").rglob("*") if path.is_file()
    )


def as_git_would(store: Store, git: Git) -> bytes:
    """Return the packed-refs that git writes for the same refs."""
    path = Path(store.path, "packed-refs")
    ours = path.read_bytes()
    git("pack-refs", "--all", cwd=Path(store.path))
    theirs = path.read_bytes()
    path.write_bytes(ours)
    return theirs


def test_every_loose_ref_becomes_a_line_that_git_would_write(
    story: Story, store: Store, git: Git
) -> None:
    before = refs_of(store, git)
    assert pack_refs(store) == 2
    assert loose_refs(store) == []
    assert refs_of(store, git) == before
    assert Path(store.path, "packed-refs").read_bytes() == as_git_would(store, git)


@pytest.mark.parametrize("name", ["и" * 42, "\udcff", f"{'a' * 120}/{'+' * 130}"])
def test_a_ref_of_any_name_is_packed(story: Story, store: Store, name: str) -> None:
    assert store.refs.create(f"refs/heads/{name}", story.head.commit)
    assert pack_refs(store) == 3
    assert loose_refs(store) == []
    assert store.refs.find(f"refs/heads/{name}") == story.head.commit


def test_tags_are_packed_with_what_they_point_at(story: Story, store: Store, git: Git) -> None:
    place = Path(store.path)
    git("tag", "-m", "words", "v1", story.head.commit, cwd=place)
    git("tag", "-m", "more words", "v2", "v1", cwd=place)
    pack_refs(store)
    assert Path(store.path, "packed-refs").read_bytes() == as_git_would(store, git)
    assert f"^{story.head.commit}\n" in Path(store.path, "packed-refs").read_text()


@pytest.mark.parametrize("header", ["", "# pack-refs with: peeled \n"])
def test_a_file_of_an_older_kind_becomes_one_of_the_newest(
    header: str, story: Story, store: Store, git: Git
) -> None:
    """The old file is unsorted, and has tags without their peeled targets."""
    git("tag", "-m", "words", "v1", story.head.commit, cwd=Path(store.path))
    git("update-ref", "refs/uwf/tag", "refs/tags/v1", cwd=Path(store.path))
    lines = git("for-each-ref", "--format=%(objectname) %(refname)", cwd=Path(store.path))
    for name in loose_refs(store):
        Path(store.path, name).unlink()
    told = "".join(f"{line}\n" for line in reversed(lines.splitlines()))
    Path(store.path, "packed-refs").write_text(header + told)
    assert store.refs.create("refs/archive/new", story.head.commit)
    before = refs_of(store, git)
    assert pack_refs(store) == 1
    assert refs_of(store, git) == before
    assert Path(store.path, "packed-refs").read_text().count("\n^") == 2


def test_a_ref_that_cannot_be_read_holds_up_no_other(
    story: Story, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied, opened = os.path.join(store.path, NAME), os.open

    def open_others(path: str, *how: int) -> int:
        if path == denied:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *how)

    monkeypatch.setattr(os, "open", open_others)
    os.mkfifo(Path(store.path, "refs/archive/pipe"))
    assert pack_refs(store) == 1
    assert loose_refs(store) == [NAME]


def test_what_git_does_not_pack_stays_as_it_is(story: Story, store: Store, git: Git) -> None:
    place = Path(store.path)
    git("symbolic-ref", "refs/uwf/link", NAME, cwd=place)
    git("update-ref", "refs/bisect/bad", story.head.commit, cwd=place)
    Path(place, "refs/archive/broken").write_text("nothing\n")
    Path(place, "refs/archive/missing").write_text("1" * 40 + "\n")
    Path(place, "refs/archive/bad name").write_text(story.head.commit + "\n")
    pack_refs(store)
    assert loose_refs(store) == [
        "refs/archive/bad name",
        "refs/archive/broken",
        "refs/archive/missing",
        "refs/bisect/bad",
        "refs/uwf/link",
    ]


def test_a_line_that_names_no_ref_is_damage_and_nothing_is_changed(
    story: Story, store: Store
) -> None:
    path = Path(store.path, "packed-refs")
    path.write_text(f"{story.head.commit} {OTHER}2\nwhat is this?\n{story.head.commit} {OTHER}\n")
    before = path.read_bytes()
    with pytest.raises(BadPackedRefs, match="what is this"):
        pack_refs(store)
    assert path.read_bytes() == before
    assert len(loose_refs(store)) == 2


def test_a_ref_that_is_locked_is_packed_and_stays_loose_as_well(
    story: Story, store: Store, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    before = refs_of(store, git)
    Path(store.path, f"{NAME}.lock").touch()
    assert pack_refs(store) == 1
    assert store.refs.find(NAME) == story.head.commit
    Path(store.path, f"{NAME}.lock").unlink()
    assert refs_of(store, git) == before


def test_packing_killed_anywhere_changes_no_ref_and_can_be_done_again(
    story: Story, store: Store, git: Git
) -> None:
    tried = 0
    for moment in itertools.count(1):
        story.step()
        before = refs_of(store, git)
        if not dies_at(moment, lambda: pack_refs(store)):
            break
        tried += 1
        assert refs_of(store, git) == before
        assert store.refs.find(NAME) == story.head.commit
        break_dead_locks(store.path)
        pack_refs(store)
        assert refs_of(store, git) == before
        assert loose_refs(store) == [], "a lock or a temporary file"
        assert not Path(store.path, "packed-refs.lock").exists()
    assert tried > 15
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def test_refs_that_move_and_go_meanwhile_are_neither_lost_nor_back(
    story: Story, store: Store, git: Git
) -> None:
    """One process packs all the time; git and we make, move and delete refs beside it."""
    names = [f"refs/threads/{number:026}" for number in range(8)]
    two = story.write_step("writer", "text")
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                pack_refs(store)
        finally:
            os._exit(1)
    try:
        for count in range(12):
            for name in names:
                assert store.refs.create(name, story.head.commit)
                assert store.refs.advance(name, seen=story.head.commit, to=two)
                assert store.refs.find(name) == two
            if count % 4 == 0:
                git("update-ref", names[0], story.head.commit, two, cwd=Path(store.path))
                git("update-ref", names[0], two, story.head.commit, cwd=Path(store.path))
            for name in names:
                assert store.refs.delete(name, seen=two)
                assert store.refs.find(name) is None
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert store.refs.names("refs/threads/") == [THREAD]


HOUR_S = 3600


def left(path: Path, age_s: float) -> Path:
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_those_of_a_process_that_lives_stay(store: Store) -> None:
    """The process began before the file was written, so it may have written the file."""
    pid = 1
    path = left(Path(store.path, "objects", "pack", f".tmp-{pid}-pack-1.pack"), 2 * HOUR_S)
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    if path.stat().st_mtime < booted + 10:
        pytest.skip("this machine has not run for two hours")
    assert remove_stale_packs(store) == 0


@pytest.mark.parametrize(("hours", "is_swept"), [(23, False), (25, True)])
@pytest.mark.parametrize("name", ["pack/tmp_pack_1", "pack/tmp_idx_1", "tmp_pack_1"])
def test_packs_untouched_for_a_day_are_removed(
    store: Store, name: str, hours: int, *, is_swept: bool
) -> None:
    path = left(Path(store.path, "objects", name), hours * HOUR_S)
    assert remove_stale_packs(store) == is_swept
    assert path.exists() is not is_swept


def test_what_has_its_name_stays(store: Store) -> None:
    for name in ("pack/pack-1.pack", "pack/pack-1.keep", "pack/.tmp-x", "tmp_objdir-incoming-1"):
        left(Path(store.path, "objects", name), 1000 * HOUR_S)
    Path(store.path, "objects", "pack", "tmp_folder").mkdir()
    os.utime(Path(store.path, "objects", "pack", "tmp_folder"), (1, 1))
    assert remove_stale_packs(store) == 0


def test_a_store_without_a_folder_of_packs_has_no_stale_ones(store: Store) -> None:
    Path(store.path, "objects", "pack").rmdir()
    assert remove_stale_packs(store) == 0


@pytest.mark.parametrize(("hours", "is_swept"), [(23, False), (25, True)])
def test_a_pack_of_ours_without_an_index_goes_after_a_day(
    store: Store, hours: int, *, is_swept: bool
) -> None:
    path = write_small_pack(store, [Blob.from_string(b"x")])
    Path(f"{path}.idx").unlink()
    left(Path(f"{path}.pack"), hours * HOUR_S)
    assert remove_stale_packs(store) == is_swept
    assert names_in(store) == ([] if is_swept else [f"{os.path.basename(path)}.pack"])


def test_one_that_git_named_stays_and_so_does_one_that_somebody_keeps(store: Store) -> None:
    path = write_small_pack(store, [Blob.from_string(b"x")])
    by_git = Path(path).with_name(f"pack-{Path(f'{path}.pack').read_bytes()[-20:].hex()}.pack")
    os.rename(f"{path}.pack", by_git)
    kept = write_small_pack(store, [Blob.from_string(b"y")])
    Path(f"{kept}.keep").touch()
    for each in (by_git, Path(f"{kept}.pack")):
        each.with_suffix(".idx").unlink(missing_ok=True)
        left(each, 1000 * HOUR_S)
    assert remove_stale_packs(store) == 0


def test_what_a_dead_writer_kept_is_let_go_and_what_git_keeps_is_not(store: Store) -> None:
    folder = Path(pack_folder(store))

    def die() -> None:
        dead = KeepFile(str(folder / "pack-dead"), share=False)
        os.kill(os.getpid(), signal.SIGKILL if dead else signal.SIGTERM)

    assert in_child(die) is None
    living = KeepFile(str(folder / "pack-living"), share=False)
    left(folder / "pack-git.keep", 1000 * HOUR_S)
    (folder / "pack-person.keep").write_text("keep this, please\n")
    assert remove_stale_packs(store) == 1
    assert names_in(store) == ["pack-git.keep", "pack-living.keep", "pack-person.keep"]
    living.release()


BLOBS = [Blob.from_string(b"%d" % number * 50) for number in range(20)]


def test_entries_are_read_as_they_were_written(store: Store) -> None:
    path = write_small_pack(store, BLOBS)
    assert read_whole_entries(path) == [build_entry(blob) for blob in BLOBS]


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_what_is_gone_is_not_read(store: Store, ending: str) -> None:
    path = write_small_pack(store, BLOBS)
    Path(path + ending).unlink()
    assert read_whole_entries(path) is None


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_any_flipped_bit_is_noticed(store: Store, ending: str) -> None:
    path = write_small_pack(store, BLOBS[:2])
    file = Path(path + ending)
    whole = file.read_bytes()
    file.chmod(0o644)
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert read_whole_entries(path) is None, at
    for size in (0, 1, 11, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert read_whole_entries(path) is None, size
    file.write_bytes(whole)
    assert read_whole_entries(path) is not None


def test_the_index_of_another_pack_is_noticed(store: Store) -> None:
    one, other = write_small_pack(store, BLOBS[:5]), write_small_pack(store, BLOBS[5:10])
    os.replace(f"{one}.idx", f"{other}.idx")
    assert read_whole_entries(other) is None
