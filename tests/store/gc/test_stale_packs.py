import itertools
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from dulwich.objects import Blob
from store.killing import dies_at
from store.small_packs import names_in, pack_folder, write_small_pack

from uwf_git.store.gc.tidy import remove_stale_packs
from uwf_git.store.objects.pack_writer import KeepFile
from uwf_git.store.store import Store

HOUR_S = 3600


def left(path: Path, age_s: float) -> Path:
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)
    return path


@pytest.fixture
def dead_pid() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(("hours", "is_swept"), [(0, False), (2, True)])
def test_packs_that_a_killed_git_has_not_named_go_when_they_are_old(
    store: Store, dead_pid: int, hours: int, *, is_swept: bool
) -> None:
    folder = Path(store.path, "objects", "pack")
    paths = [
        left(folder / f".tmp-{dead_pid}-pack-1.{suffix}", hours * HOUR_S)
        for suffix in ("pack", "idx")
    ]
    assert remove_stale_packs(store) == (2 if is_swept else 0)
    assert [path.exists() for path in paths] == [not is_swept] * 2


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
    child = os.fork()
    if child == 0:
        try:
            dead = KeepFile(str(folder / "pack-dead"), share=False)
            os.kill(os.getpid(), signal.SIGKILL if dead else signal.SIGTERM)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    living = KeepFile(str(folder / "pack-living"), share=False)
    left(folder / "pack-git.keep", 1000 * HOUR_S)
    (folder / "pack-person.keep").write_text("keep this, please\n")
    assert remove_stale_packs(store) == 1
    assert names_in(store) == ["pack-git.keep", "pack-living.keep", "pack-person.keep"]
    living.release()


def test_a_killed_sweep_is_done_by_the_next(store: Store) -> None:
    for moment in itertools.count(1):
        for _number in range(2):
            path = write_small_pack(store, [Blob.from_string(b"x")])
            Path(f"{path}.idx").unlink()
            left(Path(f"{path}.pack"), 25 * HOUR_S)
        if not dies_at(moment, partial(remove_stale_packs, store)):
            break
        remove_stale_packs(store)
        assert names_in(store) == []
    assert moment > 2
