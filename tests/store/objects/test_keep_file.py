import itertools
import json
import os
import time
from pathlib import Path

import pytest
from store.killing import dies_at, in_child

from uwf_git.store.objects.pack_writer import KeepFile, is_kept, remove_dead_keep

DAY_S = 24 * 3600


@pytest.fixture
def pack(tmp_path: Path) -> str:
    return str(tmp_path / "pack-0123")


def test_keep_is_there_until_it_is_released(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    assert is_kept(pack)
    content = json.loads(Path(pack + ".keep").read_bytes())
    assert content["pid"] == os.getpid()
    assert content["host"] == os.uname().nodename
    kept.release()
    kept.release()
    assert not is_kept(pack)


def test_keep_of_the_living_is_not_swept(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    assert not remove_dead_keep(pack + ".keep")
    assert in_child(lambda: remove_dead_keep(pack + ".keep")) is False
    kept.release()


def test_keep_of_a_writer_killed_at_any_moment_is_swept_or_says_nothing(pack: str) -> None:
    for moment in itertools.count(1):
        path = f"{pack}{moment}"
        if not dies_at(moment, lambda: KeepFile(path, share=False).release()):  # noqa: B023 - at once
            break
        # Killed before it could write its name, it leaves an empty file, which may be anybody's.
        says_nothing = Path(path + ".keep").exists() and not os.path.getsize(path + ".keep")
        assert remove_dead_keep(path + ".keep") or says_nothing or not is_kept(path)
        assert says_nothing or not is_kept(path)
    assert moment > 3


def test_forked_child_leaves_the_keep_of_its_parent_alone(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    in_child(kept.release)
    assert is_kept(pack)
    assert not remove_dead_keep(pack + ".keep")
    kept.release()


def test_keep_that_is_forgotten_is_removed(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    opened = len(os.listdir("/proc/self/fd"))
    del kept
    assert not is_kept(pack)
    assert len(os.listdir("/proc/self/fd")) == opened - 1


@pytest.mark.parametrize(
    "content", ["", "fetch-pack 4711 on here\n", "[]", "{}", '{"pid": 1}', "\0"]
)
def test_keep_of_git_and_of_people_is_never_swept(pack: str, content: str) -> None:
    path = Path(pack + ".keep")
    path.write_text(content)
    os.utime(path, (0, 0))
    assert not remove_dead_keep(str(path))
    assert path.exists()


@pytest.mark.parametrize(("age_s", "is_swept"), [(DAY_S - 600, False), (DAY_S + 600, True)])
def test_keep_of_another_machine_is_swept_after_a_day(
    pack: str, age_s: int, *, is_swept: bool
) -> None:
    path = Path(pack + ".keep")
    path.write_text('{"writer": "uwf", "pid": 1, "start": 2, "host": "elsewhere"}')
    os.utime(path, (time.time() - age_s,) * 2)
    assert remove_dead_keep(str(path)) is is_swept
    assert path.exists() is not is_swept


def test_what_is_no_keep_is_left_alone(pack: str, tmp_path: Path) -> None:
    assert not remove_dead_keep(pack + ".keep")
    assert not is_kept(pack)
    Path(pack + ".keep").symlink_to(tmp_path)
    assert not remove_dead_keep(pack + ".keep")
    assert is_kept(pack)


def test_keep_of_a_shared_store_can_be_swept_by_the_group(pack: str) -> None:
    before = os.umask(0o077)
    try:
        kept = KeepFile(pack, share=True)
    finally:
        os.umask(before)
    assert os.stat(pack + ".keep").st_mode & 0o777 == 0o660
    kept.release()


def test_keep_that_cannot_be_made_leaves_nothing(
    pack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _content: bytes) -> int:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "write", refuse)
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no space"):
        KeepFile(pack, share=False)
    assert not is_kept(pack)
    assert len(os.listdir("/proc/self/fd")) == opened
