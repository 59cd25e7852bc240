import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fresh_store import fresh_store
from store.killing import dies_at
from store.small_packs import GARBAGE
from store.story import THREAD

from uwf_git.model.names import ThreadId
from uwf_git.store.locks import hold_lock, read_holder
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    check_not_stopped,
    find_driver,
    find_holder,
    forget_lock,
    is_being_stopped,
    lock_briefly,
    lock_drive,
    lock_stop,
    lock_thread,
)
from uwf_git.surroundings import read_process_start

HOLD = """
import sys
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import forget_lock, lock_thread
store, thread = open_store(sys.argv[1]), ThreadId(sys.argv[2])
with lock_thread(store, thread, since_ms=1234) as lock:
    WHAT
    print("held", flush=True)
    sys.stdin.read()
"""

WAIT = """
import fcntl, os, sys
from uwf_git.store.locks import hold_lock
flock = fcntl.flock
def tell(descriptor, how):
    print("waits", flush=True)
    flock(descriptor, how)
fcntl.flock = tell
with hold_lock(sys.argv[1], wait=True) as descriptor:
    print(os.path.samestat(os.fstat(descriptor), os.stat(sys.argv[1])), flush=True)
"""


@contextmanager
def held(store: Store, what: str = "pass") -> Iterator[subprocess.Popen[str]]:
    """Let another process hold THREAD, after it did *what* with its lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("WHAT", what), store.path, THREAD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.communicate("")


def lock_path(store: Store) -> str:
    return store.local_path("locks", THREAD)


def lock_names(store: Store) -> list[str]:
    """List the lock files of threads; one is of the store itself."""
    return sorted(name for name in os.listdir(store.local_path("locks")) if name != "init")


def locked(store: Store, thread: ThreadId = THREAD) -> AbstractContextManager[object]:
    return lock_thread(store, thread, since_ms=5)


def refusal(store: Store) -> ThreadBusy:
    """Try to lock THREAD, and return how it is refused."""
    with pytest.raises(ThreadBusy) as caught, locked(store):
        pytest.fail("it is held")
    return caught.value


def test_a_thread_that_a_living_process_holds_is_busy_and_names_it(store: Store) -> None:
    with held(store) as process:
        busy = refusal(store)
    host = os.uname().nodename
    who = f"pid {process.pid}, host {host}, since 1970-01-01 00:00:01 UTC"
    assert busy.message == f"thread {THREAD} is busy ({who})"
    assert busy.facts["thread"] == THREAD
    holder = dict(busy.facts["holder"])
    assert holder.pop("start") > 0
    assert holder == {"pid": process.pid, "host": host, "since": 1234, "role": "", "agent": ""}
    assert (busy.code, busy.exit_status) == ("thread-busy", 4)


def test_busy_lock_says_that_a_commit_is_being_signed(store: Store) -> None:
    begin = (
        "from uwf_git.store.threads.local_files import say_signing; "
        "signing = say_signing('by openpgp'); signing.__enter__()"
    )
    end = "signing.__exit__(None, None, None)"

    with held(
        store, f"{begin}; lock.say('checker'); print('held', flush=True); sys.stdin.read(); {end}"
    ):
        assert "role checker, signing by openpgp)" in refusal(store).message
    with held(store, f"{begin}; {end}"):
        assert "signing" not in refusal(store).message


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_dead_process_never_blocks(store: Store, how: signal.Signals) -> None:
    with held(store) as process:
        process.send_signal(how)
        process.wait()
        assert read_holder(lock_path(store))["pid"] == process.pid
        with locked(store):
            assert read_holder(lock_path(store))["pid"] == os.getpid()


def test_a_process_that_is_stopped_is_alive(store: Store) -> None:
    with held(store) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        try:
            busy = refusal(store)
            assert busy.facts["holder"]["pid"] == process.pid
            assert f"`kill -CONT {process.pid}` lets it go on" in (busy.hint or "")
        finally:
            process.send_signal(signal.SIGCONT)


def test_a_process_killed_anywhere_leaves_the_thread_free(store: Store) -> None:
    def work() -> None:
        with lock_thread(store, THREAD, since_ms=5) as lock:
            lock.say("writer")
            forget_lock(store, THREAD)

    moment = 1
    while dies_at(moment, work):
        with locked(store):
            pass
        moment += 1
    assert moment > 8


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:12]))
def test_a_lock_file_of_garbage_is_a_lock_like_any_other(store: Store, content: bytes) -> None:
    path = Path(lock_path(store))
    with held(store):
        path.write_bytes(content)
        assert "busy" in refusal(store).message
    path.write_bytes(content)
    with locked(store):
        assert read_holder(str(path))["pid"] == os.getpid()


def test_waiting_for_a_forgotten_lock_locks_the_file_that_others_see(store: Store) -> None:
    with (
        held(store) as holder,
        subprocess.Popen(
            [sys.executable, "-c", WAIT, lock_path(store)], stdout=subprocess.PIPE, text=True
        ) as waiter,
    ):
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waits\n"
        forget_lock(store, THREAD)
        holder.communicate("")
        # The old file first; then the name again, which is its own by now.
        assert waiter.stdout.read() == "waits\nTrue\n"


def test_holder_of_a_forgotten_lock_does_not_disturb_the_next_one(store: Store) -> None:
    with lock_thread(store, THREAD, since_ms=1) as old:
        forget_lock(store, THREAD)
        with held(store) as process:
            old.say("too late")
            assert refusal(store).facts["holder"]["pid"] == process.pid
    assert read_holder(lock_path(store)) == {}


def test_of_many_lockers_at_once_one_wins(store: Store) -> None:
    script = """
import sys
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import ThreadBusy, lock_thread
store = open_store(sys.argv[1])
sys.stdin.readline()
try:
    with lock_thread(store, ThreadId(sys.argv[2]), since_ms=1):
        print("won", flush=True)
        sys.stdin.read()
except ThreadBusy:
    print("busy", flush=True)
"""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, store.path, THREAD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _racer in range(6)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = [racer.stdout.readline() for racer in racers if racer.stdout is not None]
    for racer in racers:
        racer.communicate("")
    assert sorted(told) == ["busy\n"] * 5 + ["won\n"]


def test_the_folder_of_locks_can_be_deleted(store: Store) -> None:
    with locked(store):
        pass
    shutil.rmtree(store.local_path())
    with locked(store):
        refusal(store)


def test_holder_is_found_while_it_lives(store: Store) -> None:
    assert find_holder(store, THREAD) is None
    with held(store, "lock.say('writer', 'uwf-mock')") as process:
        found = find_holder(store, THREAD)
        assert found is not None
        assert (found["pid"], found["role"], found["agent"]) == (process.pid, "writer", "uwf-mock")
        assert found["start"] == read_process_start(process.pid)
    assert find_holder(store, THREAD) is None


@pytest.mark.parametrize("is_reaped", [False, True], ids=["zombie", "gone"])
def test_killed_holder_is_not_found(is_reaped: bool, store: Store) -> None:  # noqa: FBT001 (pytest passes it so)
    with held(store) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        if is_reaped:
            process.wait()
        assert read_holder(lock_path(store))["pid"] == process.pid
        assert find_holder(store, THREAD) is None
        process.wait()


def test_reused_pid_is_not_a_holder(store: Store) -> None:
    """A holder was killed, and this very process has its number now."""
    with locked(store):
        told = read_holder(lock_path(store))
    stale = json.dumps({**told, "start": told["start"] - 1})
    for suffix in ("", ".drive", ".stop"):
        Path(lock_path(store) + suffix).write_text(stale)

    assert find_holder(store, THREAD) is None
    assert find_driver(store, THREAD) is None
    assert not is_being_stopped(store, THREAD)
    # The refusal while the lock is held for a moment does not name that pid either.
    with hold_lock(lock_path(store), wait=False):
        assert refusal(store).facts["holder"] == {}


def test_looking_for_the_holder_takes_no_lock(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a step that begins at this moment would be refused because of a reader."""
    with held(store):
        taken: list[str] = []
        monkeypatch.setattr("uwf_git.store.locks.take_lock", taken.append)
        assert find_holder(store, THREAD) is not None
        assert find_driver(store, THREAD) is None
        assert not is_being_stopped(store, THREAD)
        assert taken == []
        monkeypatch.undo()
    assert lock_names(store) == [THREAD]


def test_holder_on_another_machine_is_found_by_the_lock_alone(store: Store) -> None:
    with held(store) as process:
        path = Path(lock_path(store))
        path.write_text(json.dumps({"pid": process.pid, "start": 1, "host": "elsewhere"}))
        assert find_holder(store, THREAD) == {"pid": process.pid, "start": 1, "host": "elsewhere"}
    path.write_text(json.dumps({"pid": os.getpid(), "start": 1, "host": "elsewhere"}))
    assert find_holder(store, THREAD) is None


def test_drive_lock_does_not_hold_the_steps(store: Store) -> None:
    with lock_drive(store, THREAD, since_ms=7):
        driver = find_driver(store, THREAD)
        assert driver is not None
        assert (driver["pid"], driver["since"]) == (os.getpid(), 7)
        assert find_holder(store, THREAD) is None
        with locked(store):
            pass
        with pytest.raises(ThreadBusy), lock_drive(store, THREAD, since_ms=8):
            pytest.fail("one drives at a time")
    assert find_driver(store, THREAD) is None


def test_stop_lock_is_seen_and_exclusive(store: Store) -> None:
    assert not is_being_stopped(store, THREAD)
    with lock_stop(store, THREAD, since_ms=7):
        assert is_being_stopped(store, THREAD)
        assert find_holder(store, THREAD) is None
        with pytest.raises(ThreadBusy), lock_stop(store, THREAD, since_ms=8):
            pytest.fail("one ends it at a time")
        with locked(store):
            forget_lock(store, THREAD)
    assert not is_being_stopped(store, THREAD)
    assert lock_names(store) == []


def test_thread_that_is_being_stopped_says_who_tells_by_whom(store: Store) -> None:
    check_not_stopped(store, THREAD)
    with lock_stop(store, THREAD, since_ms=7), pytest.raises(ThreadBusy) as caught:
        check_not_stopped(store, THREAD)
    assert caught.value.hint == f"it is being ended; `uwf thread show {THREAD}` tells by whom"


def test_brief_lock_is_waited_for_and_not_named(store: Store) -> None:
    with lock_briefly(store, THREAD):
        assert find_holder(store, THREAD) is None
        assert refusal(store).facts["holder"] == {}
    with locked(store), pytest.raises(ThreadBusy), lock_briefly(store, THREAD):
        pytest.fail("it is held")
    with lock_briefly(fresh_store(), THREAD):
        pass


def test_holder_without_a_name_is_waited_for_a_quarter_of_a_second(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = [0.0]
    with lock_briefly(store, THREAD):
        monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
        monkeypatch.setattr(time, "sleep", slept.append)
        refusal(store)
    monkeypatch.undo()
    assert 0.2 < sum(slept) < 0.5


def test_holder_is_never_half_said(store: Store) -> None:
    """A reader between two writes of a holder must not see an empty file."""
    with lock_thread(store, THREAD, since_ms=5) as lock:
        sizes = []
        for role in ("a" * 90, "b", "c" * 60, ""):
            lock.say(role, role)
            sizes.append(os.path.getsize(lock_path(store)))
            found = find_holder(store, THREAD)
            assert found is not None
            assert (found.get("role"), found.get("agent")) == (role, role)
        assert sizes == sorted(sizes)
