"""A file is read again whenever it may have changed, and only then."""

import errno
import itertools
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from refusing import raising
from store.killing import dies_at
from store.small_packs import GARBAGE

from uwf_git.store.durable import (
    FileMemory,
    Stamp,
    add_files,
    is_settled,
    replace_file,
    sync_folder,
)
from uwf_git.store.locks import (
    Holder,
    hold_file,
    hold_lock,
    read_content,
    read_holder,
    this_process,
)
from uwf_git.surroundings import read_process_start


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the path of each file that is forced to the disk."""
    paths: list[str] = []
    force = os.fsync

    def note(descriptor: int) -> None:
        force(descriptor)
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", note)
    return paths


def add(folder: Path, count: int, *, is_durable: bool = True) -> list[str]:
    """Add *count* files."""
    return add_files(
        ((f"{folder}/{number}", b"%d" % number) for number in range(count)),
        temporary_in=str(folder),
        prefix="tmp_",
        mode=0o444,
        durable=is_durable,
    )


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_many_files_are_all_on_the_disk_and_have_their_names(
    tmp_path: Path, synced: list[str], count: int
) -> None:
    paths = add(tmp_path, count)
    assert paths == [f"{tmp_path}/{number}" for number in range(count)]
    assert [Path(path).read_bytes() for path in paths] == [b"%d" % n for n in range(count)]
    assert sorted(os.listdir(tmp_path)) == sorted(str(number) for number in range(count))
    # Each once, and when it had no name yet.
    assert len(set(synced)) == len(synced) == count
    assert all(path.startswith(f"{tmp_path}/tmp_") for path in synced)
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in paths} <= {0o444}


def test_files_that_need_not_be_durable_are_not_forced(tmp_path: Path, synced: list[str]) -> None:
    assert len(add(tmp_path, 150, is_durable=False)) == 150
    assert synced == []


def test_of_files_of_which_one_fails_none_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing_at(7))
    with pytest.raises(OSError, match="Input/output") as raised:
        add(tmp_path, 20)
    assert raised.value.filename == str(tmp_path)
    assert os.listdir(tmp_path) == []


def failing_at(number: int) -> Callable[[int], None]:
    left = iter(range(1, number))

    def fail(_descriptor: int) -> None:
        if next(left, None) is None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return fail


def test_content_that_is_written_piece_by_piece_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:3]))
    replace_file(str(tmp_path / "file"), b"more than three", durable=False)
    assert (tmp_path / "file").read_bytes() == b"more than three"


def test_a_full_disk_is_named_by_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        add(tmp_path, 3)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_put_in_place_leaves_the_old(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path / "folder"), b"content")
    assert os.listdir(tmp_path) == ["folder"]


def test_the_temporary_file_may_lie_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    replace_file(str(tmp_path / "file"), b"content", temporary_in=str(elsewhere))
    assert os.listdir(elsewhere) == []
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "file"]


def test_a_replacement_killed_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    found = set()
    for moment in itertools.count(1):
        replace_file(str(path), b"old")
        path.chmod(0o6640)
        old = path.stat()
        died = dies_at(moment, lambda: replace_file(str(path), b"new", like=old))  # noqa: B023 (it runs at once)
        state = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        if not died:
            break
        found.add(state)
    # The rename is the last change; setuid and setgid were not for the new content.
    assert (found, state) == ({(b"old", 0o6640)}, (b"new", 0o640))


def test_content_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename, sync = os.replace, os.fsync

    def noted_rename(old: str, new: str) -> None:
        done.append("rename")
        rename(old, new)

    def noted_sync(descriptor: int) -> None:
        done.append("fsync")
        sync(descriptor)

    monkeypatch.setattr(os, "replace", noted_rename)
    monkeypatch.setattr(os, "fsync", noted_sync)
    replace_file(str(tmp_path / "file"), b"content")
    assert done == ["fsync", "rename", "fsync"]


_AN_HOUR_NS = 3600 * 10**9


class _Reader:
    """Reads files, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: str) -> str:
        self.count += 1
        return Path(path).read_text() if os.path.exists(path) else ""


def _later() -> int:
    """Return a time at which the files of the test are an hour old."""
    return time.time_ns() + _AN_HOUR_NS


def test_unchanged_file_is_read_once(tmp_path: Path) -> None:
    path, read = tmp_path / "config", _Reader()
    path.write_text("one")
    memory = FileMemory[str](8, now_ns=_later)

    assert [memory.read(str(path), read) for _ in range(3)] == ["one"] * 3
    assert read.count == 1
    too_small = FileMemory[str](8, largest=2, now_ns=_later)
    assert [too_small.read(str(path), read) for _ in range(3)] == ["one"] * 3
    assert read.count == 4


def test_file_that_was_just_written_is_not_kept(tmp_path: Path) -> None:
    # Another write in the same tick of the clock, of the same length, would not be seen.
    path, read = tmp_path / "config", _Reader()
    path.write_text("one")
    memory = FileMemory[str](8)
    os.utime(path, ns=(2**62, 2**62))

    assert memory.read(str(path), read) == "one"
    path.write_text("two")
    os.utime(path, ns=(2**62, 2**62))

    assert memory.read(str(path), read) == "two"
    assert read.count == 2


@pytest.mark.parametrize("change", ["write", "replace", "times", "mode", "remove", "link"])
def test_change_is_seen(tmp_path: Path, change: str) -> None:
    path, other, read = tmp_path / "config", tmp_path / "other", _Reader()
    path.write_text("one")
    other.write_text("two")
    kept = os.stat(path)
    memory = FileMemory[str](8, now_ns=_later)
    memory.read(str(path), read)

    if change in {"write", "times"}:
        path.write_text("two")
        if change == "times":
            # As a program does that hides a change; ctime tells.
            os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    elif change == "replace":
        os.replace(other, path)
    elif change == "mode":
        path.chmod(0o600)
    else:
        path.unlink()
        if change == "link":
            path.symlink_to(other)

    assert memory.read(str(path), read) == {"mode": "one", "remove": ""}.get(change, "two")
    assert read.count == 2


@pytest.mark.parametrize(
    ("changed_ns", "now_ns", "settled"),
    [
        (1_000_000_001, 1_000_000_001, False),
        (1_000_000_001, 1_101_000_001, True),
        # A file system that counts in seconds.
        (1_000_000_000, 1_900_000_000, False),
        (1_000_000_000, 5_000_000_000, True),
        # A clock that was set back.
        (5_000_000_001, 1_000_000_000, False),
    ],
)
def test_stamp_is_settled_when_its_tick_is_over(
    changed_ns: int, now_ns: int, *, settled: bool
) -> None:
    for mtime_ns, ctime_ns in ((1, changed_ns), (changed_ns, 1)):
        assert is_settled(Stamp(1, 1, 1, mtime_ns, ctime_ns), now_ns=now_ns) is settled


def test_every_file_and_folder_is_forced_before_the_folder_above(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "deep" / "deeper").mkdir(parents=True)
    (top / "file").touch()
    (top / "deep" / "deeper" / "file").touch()
    forced: list[str] = []
    seen = mock.patch.object(
        os, "fsync", side_effect=lambda fd: forced.append(os.readlink(f"/proc/self/fd/{fd}"))
    )
    with seen:
        sync_folder(str(top))
    assert [path.removeprefix(str(tmp_path)) for path in forced] == [
        "/top/deep/deeper/file",
        "/top/deep/deeper",
        "/top/deep",
        "/top/file",
        "/top",
        "",
    ]


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_folder(str(tmp_path / "a" / "b"))


class FileBusy(Exception):
    """Another process holds the file."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "lock")


def busy(holder: Holder) -> Exception:
    return FileBusy(json.dumps(holder))


def test_held_file_names_its_holder_and_is_empty_afterwards(path: str) -> None:
    with hold_file(path, {"pid": 7, "since": 5}, patience_s=0, busy=busy) as held:
        assert read_content(path) == {"pid": 7, "since": 5}
        held.write({"pid": 7})
        assert read_content(path) == {"pid": 7}
    assert Path(path).read_bytes() == b""


def test_content_of_a_killed_holder_is_replaced(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    for content in ({}, {"pid": 8}):
        Path(path).write_text(json.dumps({"pid": 7, "role": "x" * 100}))
        with hold_file(path, content, patience_s=0, busy=busy):
            assert read_content(path) == content


def test_second_holder_is_refused_at_once_with_the_name_of_the_first(path: str) -> None:
    holder = this_process(since_ms=5)
    with (
        hold_file(path, holder, patience_s=60, busy=busy),
        pytest.raises(FileBusy) as caught,
        hold_file(path, holder, patience_s=60, busy=busy),
    ):
        pytest.fail("two held it")
    assert json.loads(str(caught.value)) == holder
    assert holder["start"] == read_process_start(os.getpid())


def test_lock_without_a_living_holder_is_waited_for(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = hold_lock(path, wait=True)
    looked.__enter__()
    Path(path).write_text(json.dumps(this_process(5) | {"start": 1}))
    monkeypatch.setattr("time.sleep", lambda _seconds: looked.__exit__(None, None, None))
    with hold_file(path, {"pid": 7}, patience_s=60, busy=busy):
        assert read_content(path) == {"pid": 7}


def test_dead_holder_is_not_named_when_patience_ends(path: str) -> None:
    with hold_lock(path, wait=True):
        Path(path).write_text(json.dumps(this_process(5) | {"start": 1}))
        with pytest.raises(FileBusy, match=r"^\{\}$"), hold_file(path, {}, patience_s=0, busy=busy):
            pytest.fail("it is held")


def test_values_are_cut_and_stripped_of_control_characters(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_text(json.dumps({"role": "a\x1b\n" + "b" * 200, "pid": 7, "other": 1}))
    assert read_holder(path) == {"role": "a" + "b" * 99, "pid": 7}


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:12]))
def test_lock_file_of_garbage_has_no_holder(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(content)
    assert read_holder(str(path)) == {}


@pytest.mark.parametrize("name", ["missing", "missing/too", "."])
def test_unreadable_lock_file_has_no_holder(tmp_path: Path, name: str) -> None:
    assert read_holder(str(tmp_path / name)) == {}
