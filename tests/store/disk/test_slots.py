"""Slots: never more holders than allowed, even if a process dies, stops or waits."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from refusing import refuses

from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.disk.held_file import read_content
from uwf_git.store.disk.slots import SlotRequest, hold_slot, slots_folder

# Holds a slot until its standard input ends; `child` lets a child of it keep the file open.
HOLD = """
import subprocess, sys
from uwf_git.store.disk.slots import SlotRequest, hold_slot
folder, limit, child = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "child"
say = lambda _running: print("waits", flush=True)
request = SlotRequest(folder, limit, {"who": "me"}, bool, say)
with hold_slot(request) as descriptor:
    if child:
        subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,), stdout=subprocess.DEVNULL)
    print("holds", flush=True)
    sys.stdin.read()
"""

# Leaves a mark when it gets a slot and before it frees the slot.
WORK = """
import os, sys, time
from uwf_git.store.disk.slots import SlotRequest, hold_slot
request = SlotRequest(sys.argv[1], 3, {"who": "me"}, bool, lambda _running: None)
with hold_slot(request):
    for mark in b"+-":
        log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, bytes([mark]))
        os.close(log)
        time.sleep(0.005)
"""


class GivenUp(Exception):
    """The caller does not want to wait any longer."""


def give_up(_running: int) -> None:
    raise GivenUp


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "slots")


def asked(folder: str, limit: int = 1, **fields: Any) -> SlotRequest:
    request = SlotRequest(folder, limit, {"who": "test"}, bool, give_up)
    return request._replace(**fields)


def start(folder: str, limit: int = 1, how: str = "alone") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, folder, str(limit), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def held(folder: str, how: str = "alone") -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the only slot."""
    with start(folder, how=how) as process:
        try:
            assert line_of(process) == "holds\n"
            yield process
        finally:
            # Its child as well, if it has one.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def is_free(folder: str, limit: int = 1, **fields: Any) -> bool:
    try:
        with hold_slot(asked(folder, limit, **fields)) as descriptor:
            return descriptor is not None
    except GivenUp:
        return False


def test_slot_names_its_holder_and_is_empty_afterwards(folder: str) -> None:
    with hold_slot(asked(folder)) as descriptor:
        assert descriptor is not None
        assert read_content(f"{folder}/0") == {"who": "test"}
        assert not os.get_inheritable(descriptor)
    assert Path(folder, "0").read_bytes() == b""


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_there_are_as_many_as_there_may_be(folder: str, limit: int) -> None:
    with ExitStack() as stack:
        for _ in range(limit):
            assert stack.enter_context(hold_slot(asked(folder, limit))) is not None
        assert not is_free(folder, limit)
        # Others may allow more, or less; each goes by what runs.
        assert is_free(folder, limit + 1)
        assert limit == 1 or not is_free(folder, limit - 1)
    assert is_free(folder, limit)
    assert len(os.listdir(folder)) <= limit + 2


def test_request_that_does_not_wait_gets_none(folder: str) -> None:
    with held(folder), hold_slot(asked(folder, waits=False)) as descriptor:
        assert descriptor is None
    with hold_slot(asked(folder, waits=False)) as descriptor:
        assert descriptor is not None


def test_request_that_does_not_wait_does_not_wait_for_the_queue(folder: str) -> None:
    # It may be the holder itself that waits for us, and they for it.
    with held(folder), start(folder) as waiter:
        assert line_of(waiter) == "waits\n"
        try:
            with hold_slot(asked(folder, waits=False)) as descriptor:
                assert descriptor is None
        finally:
            waiter.kill()


def test_request_that_does_not_wait_lets_a_short_look_finish(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        stack.enter_context(hold_lock(f"{folder}/queue", wait=True))
        monkeypatch.setattr("time.sleep", lambda _seconds: stack.close())

        with hold_slot(asked(folder, waits=False)) as descriptor:
            assert descriptor is not None


def test_waiting_request_learns_how_many_slots_are_held(folder: str) -> None:
    told: list[int] = []

    def listen(running: int) -> None:
        told.append(running)
        raise GivenUp

    with held(folder), pytest.raises(GivenUp), hold_slot(asked(folder, on_wait=listen)):
        pytest.fail("there is none")
    assert told == [1]


def test_waiting_request_gets_the_slot_when_the_holder_is_done(folder: str) -> None:
    with held(folder) as holder, start(folder) as waiter:
        assert line_of(waiter) == "waits\n"
        holder.communicate("")
        while (line := line_of(waiter)) == "waits\n":
            pass
        waiter.communicate("")
        assert line == "holds\n"


def test_dead_process_never_blocks(folder: str) -> None:
    with held(folder) as holder:
        assert not is_free(folder)
        holder.kill()
        holder.wait()
        assert is_free(folder)


def test_first_of_the_queue_that_dies_lets_the_next_one_look(folder: str) -> None:
    with held(folder) as holder, start(folder) as first, start(folder) as second:
        for each in (first, second):
            assert line_of(each) == "waits\n"
        first.kill()
        holder.communicate("")
        while (line := line_of(second)) == "waits\n":
            pass
        second.communicate("")
        assert line == "holds\n"


def test_child_that_outlives_the_holder_holds_it_as_long_as_that_counts(folder: str) -> None:
    seen: list[Mapping[str, Any]] = []

    def counts(told: Mapping[str, Any]) -> bool:
        seen.append(told)
        return True

    with held(folder, "child") as holder:
        holder.kill()
        holder.wait()
        assert not is_free(folder, counts=counts)
        assert seen[0] == {"who": "me"}
        # The caller says that the holder is a stray child: another file is taken instead.
        assert is_free(folder, counts=lambda _told: False)


def test_child_that_the_holder_left_behind_is_a_stray_one(folder: str) -> None:
    with held(folder, "child") as holder:
        holder.communicate("")
        with hold_lock(f"{folder}/0", wait=False) as descriptor:
            assert descriptor is None, "the child has let go"
        assert is_free(folder, counts=bool)


def test_giving_up_in_the_queue_releases_it(folder: str) -> None:
    queue = f"{folder}/queue"
    with hold_lock(queue, wait=True):
        assert not is_free(folder)
    deadline = time.monotonic() + 10
    # The turn that was waited for comes, and is let go at once.
    while not is_free(folder):
        assert time.monotonic() < deadline
    with hold_lock(queue, wait=True) as descriptor:
        assert descriptor is not None


def test_ctrl_c_ends_the_waiting(folder: str) -> None:
    def interrupt(_running: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with held(folder):
        for place in ("queue", "slot"):
            with ExitStack() as stack:
                if place == "queue":
                    stack.enter_context(hold_lock(f"{folder}/queue", wait=True))
                with pytest.raises(KeyboardInterrupt), hold_slot(asked(folder, on_wait=interrupt)):
                    pytest.fail("there is none")
    deadline = time.monotonic() + 10
    while not is_free(folder):
        assert time.monotonic() < deadline


def test_forty_processes_come_to_their_turn_three_at_a_time(folder: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [
        subprocess.Popen([sys.executable, "-c", WORK, folder, str(log)]) for _ in range(40)
    ]
    for process in processes:
        assert process.wait() == 0
    running = most = 0
    for mark in log.read_text():
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert log.read_text().count("+") == 40
    assert running == 0
    assert most <= 3


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 9_000])
def test_slot_of_garbage_says_nothing(folder: str, content: bytes) -> None:
    Path(folder).mkdir()
    Path(folder, "0").write_bytes(content)
    assert read_content(f"{folder}/0") == {}
    assert is_free(folder)


def test_other_files_in_the_folder_are_no_slots(folder: str) -> None:
    Path(folder).mkdir()
    for name in ("queue", ".tmp", "x1", "²"):
        Path(folder, name).write_text(json.dumps({"who": "x"}))
    with hold_lock(f"{folder}/x1", wait=True):
        assert is_free(folder)


def test_folder_is_the_users_on_this_machine() -> None:
    machine = os.uname().nodename
    assert slots_folder({"HOME": "/home/x", "XDG_RUNTIME_DIR": "/run/x"}) == (
        f"/home/x/.uwf/slots/{machine}"
    )


def test_user_without_a_home_is_found_by_its_number_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pwd  # noqa: PLC0415 (Unix only)

    own: Callable[[int], Any] = pwd.getpwuid
    assert slots_folder({}).startswith(own(os.getuid()).pw_dir)
    # No such user: a container that was given a number.
    monkeypatch.setattr(os, "getuid", lambda: 4_123_456_789)
    with refuses("no-place-for-slots") as caught:
        slots_folder({})
    assert caught.value.exit_status == 1
