"""Locks of files; how refs survive being killed at any moment is in test_refs.py."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import run_python
from refusing import raising, refuses

from uwf_git.model.names import Oid
from uwf_git.store import locks as ref_lock
from uwf_git.store.locks import (
    LockingUnsupported,
    RefLocked,
    break_dead_locks,
    hold_lock,
    hold_ref_lock,
    hold_ref_locks,
    markers,
)
from uwf_git.store.store import Store

HOLD = """
import sys
from uwf_git.store.locks import hold_lock
with hold_lock(sys.argv[1], wait=True) as descriptor:
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with hold_lock(str(path), wait=True) as descriptor:
            assert descriptor is not None


def test_a_file_removed_just_before_it_was_locked_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    lock = fcntl.flock

    def remove_first(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    opened = len(os.listdir("/proc/self/fd"))
    with hold_lock(str(path), wait=False) as descriptor:
        assert descriptor is not None
        assert os.path.samestat(os.fstat(descriptor), path.stat())
        assert len(os.listdir("/proc/self/fd")) == opened + 1


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(OSError(code, os.strerror(code))))
    path = str(tmp_path / "lock")
    with pytest.raises(LockingUnsupported, match=path), hold_lock(path, wait=True):
        pytest.fail("there are no locks")


def test_other_errors_of_flock_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(OSError(errno.EIO, "input/output error")))
    with pytest.raises(OSError, match="input/output"), hold_lock(str(tmp_path / "lock"), wait=True):
        pytest.fail("it cannot be taken")


@pytest.mark.parametrize("kind", ["link", "link to nothing", "fifo", "folder"])
def test_lock_that_is_not_a_regular_file_is_refused_and_unchanged(
    tmp_path: Path, kind: str
) -> None:
    path, precious = tmp_path / "lock", tmp_path / "precious"
    precious.write_text("mine")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(precious if kind == "link" else tmp_path / "nothing")
    with refuses("no-lock-file", match="is not a regular file"), hold_lock(str(path), wait=True):
        pass
    assert os.path.lexists(path)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


WITHOUT_UNIX = """
import importlib, pkgutil, sys
absent = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "readline", "syslog")
for name in absent:
    sys.modules[name] = None
import uwf_git
found = pkgutil.walk_packages(uwf_git.__path__, "uwf_git.")
names = [each.name for each in found if not each.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
from uwf_git.store.locks import LockingUnsupported, hold_lock
try:
    with hold_lock(sys.argv[1], wait=True):
        pass
except LockingUnsupported as refused:
    print(len(names) > 200, refused.message)
"""


def test_everything_can_be_imported_where_there_are_no_locks(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    told = run_python("-c", WITHOUT_UNIX, path)
    assert told == f"True the system of {path} has no file locks (flock)\n"
    assert not path.exists()


def test_a_child_that_is_forked_meanwhile_does_not_keep_a_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    (reading, writing), (heard, said) = os.pipe(), os.pipe()
    with hold_lock(path, wait=False) as held:
        pid = os.fork()
        if pid == 0:
            os.write(said, b"!")
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        assert os.read(heard, 1) == b"!"
        opened = len(os.listdir("/proc/self/fd"))
        with hold_lock(path, wait=False) as again:
            assert again is None
        assert len(os.listdir("/proc/self/fd")) == opened
    try:
        # The child is there still, for it waits for us.
        with hold_lock(path, wait=False) as again:
            assert again is not None
            assert held is not None
    finally:
        for descriptor in (writing, reading, heard, said):
            os.close(descriptor)
        os.waitpid(pid, 0)


NAME = "refs/threads/a"
ONE, OTHER = Oid("1" * 40), Oid("2" * 40)


def left_behind(directory: Path) -> list[str]:
    """List the lock, marker and temporary files."""
    names = [path.relative_to(directory).as_posix() for path in directory.rglob("*")]
    return [
        name
        for name in names
        if name.endswith(".lock") or (name.startswith("uwf/ref-locks/") and "guard-" not in name)
    ]


def test_what_git_locked_after_us_is_not_ours_to_remove(tmp_path: Path) -> None:
    with hold_ref_lock(str(tmp_path), NAME, b"", durable=False) as lock:
        os.replace(lock, tmp_path / NAME)
        Path(lock).write_text("git's")
    assert Path(lock).read_text() == "git's"


def test_names_that_share_a_guard_are_locked_together(tmp_path: Path) -> None:
    contents = {f"refs/{number}": b"" for number in range(100)}
    with hold_ref_locks(str(tmp_path), contents, durable=False) as locks:
        assert len(set(locks)) == 100
    assert left_behind(tmp_path) == []


def test_when_one_of_several_is_held_none_stays_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    held = tmp_path / "b.lock"
    held.touch()
    with (
        pytest.raises(RefLocked, match=re.escape(str(held))),
        hold_ref_locks(str(tmp_path), {"a": b"", "b": b""}, durable=False),
    ):
        pytest.fail("it was held")
    assert left_behind(tmp_path) == ["b.lock"]


def test_foreign_lock_is_not_broken_for_an_old_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process left its marker; git has the lock now, and it is git's."""
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    marker = Path(markers(str(tmp_path)), "refs%2Fthreads%2Fa")
    marker.parent.mkdir(parents=True)
    marker.write_text("ours")
    lock = tmp_path / f"{NAME}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("git's")
    with pytest.raises(RefLocked), hold_ref_lock(str(tmp_path), NAME, b"", durable=False):
        pytest.fail("it was held")
    assert left_behind(tmp_path) == [f"{NAME}.lock"]


@pytest.mark.parametrize("name", [NAME, f"refs/workflows/{'é' * 120}", "refs/heads/\udcff"])
def test_dead_locks_are_broken_by_the_next_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    Path(markers(str(tmp_path))).mkdir(parents=True)
    (tmp_path / name).parent.mkdir(parents=True)
    for each in (name, "packed-refs"):
        lock, marker = ref_lock._paths(str(tmp_path), each)  # noqa: SLF001 (as below)
        Path(lock).write_text("ours")
        os.link(lock, marker)
    with hold_ref_lock(str(tmp_path), name, b"", durable=False):
        assert {f"{name}.lock"} == {each for each in left_behind(tmp_path) if "uwf/" not in each}
    assert left_behind(tmp_path) == []


def test_a_lock_of_packed_refs_held_by_the_living_is_left_alone(tmp_path: Path) -> None:
    with (
        hold_ref_lock(str(tmp_path), "packed-refs", b"", durable=False) as lock,
        hold_ref_lock(str(tmp_path), NAME, b"", durable=False),
    ):
        assert Path(lock).exists()


def test_without_hard_links_refs_are_moved_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", raising(OSError(errno.EPERM, "no hard links here")))
    assert store.refs.create(NAME, ONE)
    assert not store.refs.create(NAME, OTHER)
    assert store.refs.advance(NAME, seen=ONE, to=OTHER)
    assert not store.refs.advance(NAME, seen=ONE, to=OTHER)
    assert store.refs.move(NAME, seen=OTHER, to_name="refs/archive/a", to=ONE)
    assert store.refs.delete("refs/archive/a", seen=ONE)
    assert left_behind(Path(store.path)) == []


def test_errors_of_the_system_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", raising(OSError(errno.ENOSPC, "no space left on device")))
    with (
        pytest.raises(OSError, match="no space left"),
        hold_ref_lock(str(tmp_path), NAME, b"", durable=False),
    ):
        pytest.fail("it cannot be taken")
    assert left_behind(tmp_path) == []


def test_only_markers_are_swept_wherever_the_folder_leads(tmp_path: Path) -> None:
    mine, store = tmp_path / "mine", tmp_path / "store"
    mine.mkdir()
    (store / "uwf").mkdir(parents=True)
    Path(markers(str(store))).symlink_to(mine)
    names = ["notes.txt", "refs%2F..%2F..%2Fx", "refs", "a%20b", "refs%2fthreads%2fa"]
    for name in names:
        (mine / name).write_text("precious")
    (mine / "refs%2Fthreads%2Fa").write_text("what a killed process left")
    assert break_dead_locks(str(store)) == 1
    assert {path.name for path in mine.iterdir() if "guard-" not in path.name} == set(names)


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_markers_are_named_as_they_always_were(name: str) -> None:
    marker = ref_lock._paths("/store", name)[1]  # noqa: SLF001 (no name leads to it but through a lock)

    assert os.path.basename(marker) == quote(name, safe="")
