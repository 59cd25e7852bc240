import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uwf_git.store.disk.locks import hold_lock
from uwf_git.store.gc import packing as gc_lock
from uwf_git.store.gc.packing import GcRuns, check_git_lock, hold_gc_lock, is_gc_running
from uwf_git.store.store import Store

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
    pid = os.fork()
    if pid == 0:
        with hold_gc_lock(store):
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    with hold_gc_lock(store):
        pass


def test_short_look_is_not_taken_for_a_gc(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_lock, "_HELD_PATIENCE_S", 0.01)
    path = store.local_path("locks", "gc")
    with hold_lock(path, wait=True), pytest.raises(GcRuns, match="by an unknown process"):
        gc_lock.hold_gc_lock(store).__enter__()


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


def test_zombie_is_dead(store: Store) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # Its end comes when it ends; it is a zombie until we wait for it.
        assert process.stdout.read() == b""
        deadline = time.monotonic() + 10
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
        path = write_pid(store, f"{process.pid} {HOST}")
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
