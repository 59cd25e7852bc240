"""Which packs are told apart: those of steps, and what others rely on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from refusing import refuses
from store.conftest import Git
from store.killing import in_child
from store.small_packs import names_in, pack_folder, packs_in, write_blobs
from store.story import Story

from uwf_git.store import packing as gc_lock
from uwf_git.store.git.config import GitConfig
from uwf_git.store.packing import (
    Due,
    GcRuns,
    check_git_lock,
    count_files,
    count_unpacked,
    find_due,
    find_expiry,
    has_failed_lately,
    hold_gc_lock,
    is_detached,
    is_gc_running,
    is_packed,
    list_own_packs,
    list_small_packs,
    pack_objects,
    read_count,
    remove_packs,
    take_gc_log,
    write_gc_log,
)
from uwf_git.store.store import Store
from uwf_git.store.tidy import pack_refs


def test_store_is_smaller_afterwards(story: Story, store: Store, git: Git) -> None:
    before = count_files(store)
    assert (before.loose_objects, before.packs) == (0, 10)
    pack_refs(store)
    pack_objects(store, os.environ)
    after = count_files(store)
    assert after[:2] == (0, 1)
    assert after.size_bytes < before.size_bytes / 2
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def test_without_git_nothing_is_packed(story: Story, store: Store) -> None:
    before = count_files(store)
    with refuses("no-git"):
        pack_objects(store, {"PATH": ""})
    assert count_files(store) == before


HOST = os.uname().nodename


def write_pid(store: Store, content: str, *, name: str = "gc.pid", age_s: float = 0) -> Path:
    path = Path(store.path, name)
    path.write_text(content)
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_second_gc_is_refused_and_names_the_first(store: Store) -> None:
    with hold_gc_lock(store), pytest.raises(GcRuns) as caught, hold_gc_lock(store):
        pytest.fail("two held it")
    assert caught.value.exit_status == 4
    assert caught.value.facts["holder"]["pid"] == os.getpid()
    assert f"pid {os.getpid()}, host {HOST}, since 20" in caught.value.message


def test_it_is_known_whether_one_runs(store: Store) -> None:
    assert not is_gc_running(store)
    with hold_gc_lock(store):
        assert is_gc_running(store)
    assert not is_gc_running(store)


def test_the_lock_of_a_killed_process_is_free(store: Store) -> None:
    def die() -> None:
        with hold_gc_lock(store):
            os.kill(os.getpid(), 9)

    assert in_child(die) is None
    with hold_gc_lock(store):
        pass


def test_a_gc_of_git_that_lives_is_named(store: Store) -> None:
    write_pid(store, f"{os.getpid()} {HOST}")
    with pytest.raises(GcRuns, match=f"pid {os.getpid()}, host {HOST}"):
        check_git_lock(store)
    with pytest.raises(GcRuns):
        gc_lock.hold_gc_lock(store).__enter__()


@pytest.mark.parametrize("is_alive", [False, True])
def test_what_a_dead_gc_of_git_left_is_cleared_away(store: Store, *, is_alive: bool) -> None:
    """A process that is alive, but began later, only has its number."""
    pid = os.getpid() if is_alive else dead_pid()
    path = write_pid(store, f"{pid} {HOST}", age_s=is_alive * 30 * 24 * 3600)
    check_git_lock(store)
    assert not path.exists()


def test_a_gc_on_another_machine_is_believed_for_half_a_day(store: Store) -> None:
    path = write_pid(store, "1 elsewhere.example", age_s=3600)
    with pytest.raises(GcRuns, match="elsewhere"):
        check_git_lock(store)
    write_pid(store, "1 elsewhere.example", age_s=13 * 3600)
    check_git_lock(store)
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "\0\0", "nobody", "99999999999999999999 x"])
def test_invalid_gc_pid_does_not_block(store: Store, content: str) -> None:
    write_pid(store, content)
    check_git_lock(store)


def test_gc_pid_lock_of_a_dead_process_is_removed_at_once(store: Store) -> None:
    path = write_pid(store, f"{dead_pid()} {HOST}", name="gc.pid.lock")
    began = time.monotonic()
    check_git_lock(store)
    assert not path.exists()
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    "content", ["", "12", f"{os.getpid()} {HOST}"], ids=["empty", "a number", "another host"]
)
def test_unchanged_gc_pid_lock_without_a_process_is_removed(
    store: Store, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc_lock, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(gc_lock, "_PAUSE_S", 0.01)
    path = write_pid(store, content, name="gc.pid.lock")
    check_git_lock(store)
    assert not path.exists()


def test_released_gc_pid_lock_is_ignored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_pid(store, "", name="gc.pid.lock")
    monkeypatch.setattr(time, "sleep", lambda _s: path.rename(path.with_suffix("")))
    check_git_lock(store)
    assert path.with_suffix("").exists()


def test_for_a_day_nothing_begins_by_itself(store: Store) -> None:
    assert not has_failed_lately(store)
    write_gc_log(store, "why")
    assert has_failed_lately(store)
    # Long ago, and by a clock that was set back since.
    for time_s in (1_000_000_000, 16_000_000_000):
        os.utime(Path(store.local_path("gc.log")), (time_s, time_s))
        assert not has_failed_lately(store)
    assert take_gc_log(store) == "why"


DAY_S = 24 * 3600


def config(**values: str) -> GitConfig:
    return GitConfig({f"gc.{name.lower()}": [value] for name, value in values.items()})


def with_objects(store: Store, count: int, *, folder: str = "17") -> None:
    place = Path(store.path, "objects", folder)
    place.mkdir(exist_ok=True)
    for number in range(count):
        (place / f"{number:038x}").touch()


@pytest.mark.parametrize(("count", "is_due"), [(27, False), (28, True)])
def test_loose_objects_are_estimated_from_one_folder(
    store: Store, count: int, *, is_due: bool
) -> None:
    """27 * 256 is more than 6700, but git rounds its threshold up, and wants more than that."""
    with_objects(store, count)
    with_objects(store, 99, folder="18")
    assert find_due(store) == Due(objects=is_due, refs=False)


def test_thousands_of_loose_refs_are_due(store: Store) -> None:
    archive = Path(store.path, "refs", "archive")
    archive.mkdir(parents=True)
    for number in range(1001):
        (archive / str(number)).touch()
    assert find_due(store) == Due(objects=False, refs=True)


@pytest.mark.parametrize("never", ["0", "-1"])
def test_never_is_never(store: Store, never: str) -> None:
    with_objects(store, 100)
    assert not find_due(store._replace(config=config(auto=never)))


@pytest.mark.parametrize(
    ("told", "loose"),
    [("100", 100), (" 2k", 2048), ("1M", 2**20), ("-5", 0), ("many", 6700), ("", 6700)],
)
def test_numbers_are_read_as_git_does(told: str, loose: int) -> None:
    assert read_count(config(auto=told), "gc.auto", 6700) == loose


def test_packing_is_done_in_the_background_unless_git_config_says_no() -> None:
    assert is_detached(config())
    assert not is_detached(config(autoDetach="false"))


@pytest.mark.parametrize(
    ("told", "days"),
    [("", 14), ("2.weeks.ago", 14), ("90 days", 90), ("400.days", 400), ("1.day.ago", 1)],
)
def test_what_no_ref_needs_is_kept_for_a_while(store: Store, told: str, days: int) -> None:
    expiry = find_expiry(store._replace(config=config(pruneExpire=told)), "git", os.environ)
    assert expiry is not None
    assert abs(time.time() - days * DAY_S - expiry) < DAY_S / 8


@pytest.mark.parametrize("told", ["never", "false", "nonsense"])
def test_what_no_ref_needs_is_kept_for_ever(store: Store, told: str) -> None:
    assert find_expiry(store._replace(config=config(pruneExpire=told)), "git", os.environ) is None


@pytest.mark.parametrize("told", ["now", "1.second.ago", "all", "5.minutes.ago"])
def test_what_a_step_has_just_written_is_never_old_enough(store: Store, told: str) -> None:
    expiry = find_expiry(store._replace(config=config(pruneExpire=told)), "git", os.environ)
    assert expiry is not None
    assert expiry <= time.time() - DAY_S


def stems(store: Store) -> list[str]:
    return [os.path.basename(pack.path) for pack in list_small_packs(pack_folder(store))]


@pytest.mark.parametrize("ending", ["keep", "rev", "bitmap", "mtimes", "promisor", "new"])
def test_what_has_a_file_of_git_beside_it_is_left_alone(store: Store, ending: str) -> None:
    write_blobs(store, 2)
    first, other = packs_in(store)
    Path(pack_folder(store), f"{first}.{ending}").touch()
    assert stems(store) == [other]
    assert count_unpacked(pack_folder(store), up_to=0) == 1


def test_what_git_packed_is_not_a_steps(store: Store, git: Git) -> None:
    write_blobs(store, 3, each=5)
    oids = git("cat-file", "--batch-check=%(objectname)", "--batch-all-objects", cwd=at(store))
    git("pack-objects", "-q", f"{pack_folder(store)}/pack", stdin=oids, cwd=at(store))
    assert len(packs_in(store)) == 4
    assert len(stems(store)) == 3
    assert count_unpacked(pack_folder(store), up_to=14) == 15
    (by_git,) = set(packs_in(store)) - set(stems(store))
    assert is_packed(f"{pack_folder(store)}/{by_git}")


def test_beyond_the_limit_it_is_told_only_that_there_are_more(store: Store, git: Git) -> None:
    write_blobs(store, 4, each=3)
    assert count_unpacked(pack_folder(store), up_to=5) > 5
    git("repack", "-adq", cwd=at(store))


def test_packs_in_the_multi_pack_index_of_git_are_gits(store: Store, git: Git) -> None:
    write_blobs(store, 3)
    git("multi-pack-index", "write", cwd=at(store))
    write_blobs(store, 2)
    packs = list_own_packs(pack_folder(store))
    assert len(packs) == 2
    git("multi-pack-index", "write", cwd=at(store))
    remove_packs(packs)
    assert len(packs_in(store)) == 5
    git("multi-pack-index", "verify", cwd=at(store))


@pytest.mark.parametrize("content", [b"", b"MIDX", b"MIDX\1\1\7\0\0\0\0\3", os.urandom(200)])
def test_a_multi_pack_index_that_is_none_names_nothing(store: Store, content: bytes) -> None:
    write_blobs(store, 2)
    Path(pack_folder(store), "multi-pack-index").write_bytes(content)
    assert len(stems(store)) == 2


def test_what_is_kept_since_the_listing_is_not_removed(store: Store) -> None:
    write_blobs(store, 2)
    first, other = list_own_packs(pack_folder(store))
    Path(f"{first.path}.keep").touch()
    remove_packs([first, other])
    assert names_in(store) == [
        f"{os.path.basename(first.path)}.{ending}" for ending in ("idx", "keep", "pack")
    ]


def at(store: Store) -> Path:
    return Path(store.path)
