"""A file is read again whenever it may have changed, and only then."""

import os
import time
from pathlib import Path

import pytest

from uwf_git.store.disk.durable import FileMemory, Stamp, is_settled, read_stamp

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

    expected = {"mode": "one", "remove": ""}.get(change, "two")
    assert memory.read(str(path), read) == expected
    assert read.count == 2


def test_missing_file_is_asked_for_once_until_it_is_there(tmp_path: Path) -> None:
    path, read = tmp_path / "config", _Reader()
    memory = FileMemory[str](8, now_ns=_later)

    assert [memory.read(str(path), read) for _ in range(3)] == [""] * 3
    assert read.count == 1
    path.write_text("one")
    assert memory.read(str(path), read) == "one"


def test_failure_is_not_kept(tmp_path: Path) -> None:
    memory = FileMemory[str](8, now_ns=_later)

    def fail(_path: str) -> str:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            memory.read(str(tmp_path), fail)


def test_large_file_and_too_many_files_are_not_kept(tmp_path: Path) -> None:
    read = _Reader()
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name * 10)
    small, few = FileMemory[str](8, largest=5, now_ns=_later), FileMemory[str](2, now_ns=_later)

    for _ in range(2):
        small.read(str(tmp_path / "a"), read)
    assert read.count == 2
    for name in ("a", "b", "c", "a", "c"):
        few.read(str(tmp_path / name), read)
    assert read.count == 6


def test_path_that_cannot_be_asked_is_read(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)

    assert FileMemory[str](8).read(str(path), lambda _path: "read") == "read"


@pytest.mark.parametrize(
    ("changed_ns", "now_ns", "settled"),
    [
        (1_000_000_001, 1_000_000_001, False),
        (1_000_000_001, 1_021_000_001, True),
        # A file system that counts in seconds.
        (1_000_000_000, 1_021_000_000, False),
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


def test_stamp_of_nothing(tmp_path: Path) -> None:
    assert read_stamp(str(tmp_path / "none")) is None
    assert read_stamp(str(tmp_path / "none" / "below")) is None
    assert is_settled(None, now_ns=0)
