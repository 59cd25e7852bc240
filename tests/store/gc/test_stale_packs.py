import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uwf_git.store.gc.stale_packs import remove_stale_packs
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
