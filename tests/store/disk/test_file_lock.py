import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from refusing import refuses

from uwf_git.store.disk.locks import LockingUnsupported, hold_lock

HOLD = """
import sys
from uwf_git.store.disk.locks import hold_lock
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


def test_a_lock_is_held_and_let_go_of(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "lock")
    for _count in range(2):
        with hold_lock(path, wait=False) as descriptor:
            assert descriptor is not None
            with hold_lock(path, wait=False) as second:
                assert second is None


def test_a_lock_that_another_process_holds_is_not_to_be_had(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        with hold_lock(str(path), wait=False) as descriptor:
            assert descriptor is None
        process.communicate("")
    with hold_lock(str(path), wait=False) as descriptor:
        assert descriptor is not None


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with hold_lock(str(path), wait=True) as descriptor:
            assert descriptor is not None


def test_waiting_for_a_removed_lock_file_locks_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        path.unlink()
        with hold_lock(str(path), wait=True) as descriptor:
            assert descriptor is not None
            assert os.path.samestat(os.fstat(descriptor), path.stat())
        process.communicate("")


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
    with hold_lock(str(path), wait=False) as descriptor:
        assert descriptor is not None
        assert os.path.samestat(os.fstat(descriptor), path.stat())


def test_a_child_that_was_not_handed_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(str(path), wait=False):
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with child, hold_lock(str(path), wait=False) as descriptor:
        assert descriptor is not None
        child.communicate(b"")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(_descriptor: int, _how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = str(tmp_path / "lock")
    with pytest.raises(LockingUnsupported, match=path), hold_lock(path, wait=True):
        pytest.fail("there are no locks")


def test_other_errors_of_flock_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _how: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(OSError, match="input/output"),
        hold_lock(str(tmp_path / "lock"), wait=True),
    ):
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
from uwf_git.store.disk.locks import LockingUnsupported, hold_lock
try:
    with hold_lock(sys.argv[1], wait=True):
        pass
except LockingUnsupported as refused:
    print(len(names) > 200, refused.message)
"""


def test_everything_can_be_imported_where_there_are_no_locks(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, str(path)], capture_output=True, text=True, check=True
    )

    assert ran.stdout == f"True the system of {path} has no file locks (flock)\n"
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
        with hold_lock(path, wait=False) as again:
            assert again is None
    try:
        # The child is there still, for it waits for us.
        with hold_lock(path, wait=False) as again:
            assert again is not None
            assert held is not None
    finally:
        for descriptor in (writing, reading, heard, said):
            os.close(descriptor)
        os.waitpid(pid, 0)
