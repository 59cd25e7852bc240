"""Commands by chance on a disk that is really full: no answer is lost, or paid for twice."""

import ctypes
import os
import random
import subprocess
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commands.killed import check_with_git, find_troubles
from commands.world import World, make_store
from conftest import Draws
from store.killing import in_child

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import list_threads

DISK_BYTES = 4 * 1024 * 1024
MOST_LEFT_BYTES = 512 * 1024
FULL = "No space left on device"

# linux/sched.h
NEW_NAMESPACES = 0x00020000 | 0x10000000

WORK = """\
echo run >>runs
. ./before
printf '{"meta": {"text": "words", "ok": true}, "content": "%s"}' "$(cat answer)"
. ./after
exit 0
"""


def test_full_disk_loses_no_answer_and_leaves_nothing_half(world: World, draws: Draws) -> None:
    refused = in_child(enter_namespaces)
    if refused is not None:
        pytest.skip(f"a disk of our own cannot be mounted here: {refused}")

    failed = in_child(partial(play_rounds, world, draws.chance, len(draws.rounds(20))))

    if isinstance(failed, BaseException):
        raise failed
    assert failed


def enter_namespaces() -> None:
    """Let this process, which has one thread, mount what only it and its children see."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACES):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)


def play_rounds(world: World, chance: random.Random, rounds: int) -> int:
    """Play rounds, each on a new disk; return how many commands met a full one."""
    enter_namespaces()
    disk = world.place.parent / "disk"
    disk.mkdir()
    failed = 0
    for number in range(rounds):
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], check=True)
        try:
            failed += Round(world, chance, disk).play()
        except Exception as error:  # noqa: BLE001 - it is reported to the parent
            # Some of our errors cannot be handed to the parent; their text can.
            told = "".join(traceback.format_exception(error))
            raise AssertionError(f"in round {number + 1} of {rounds}: {told}") from None
        unmount(disk)
    print(f"{rounds} full disks; {failed} commands failed")  # noqa: T201 - for `pytest -rA`
    return failed


def unmount(disk: Path) -> None:
    """Unmount *disk* once nobody tidies it in the background any more."""
    deadline = time.monotonic() + 60
    while subprocess.run(["umount", disk], capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, "somebody is still at work on it"
        time.sleep(0.05)


class Round:
    """A store on a small disk, commands while it is full, and what holds afterwards."""

    def __init__(self, world: World, chance: random.Random, disk: Path) -> None:
        self.world = World(world.place, make_store(disk / "store.git"), world.caller, world.new_id)
        self.chance, self.disk = chance, disk
        self.failed: list[str] = []

    def play(self) -> int:
        """Play the round; return how many commands met the full disk."""
        (self.world.place / "runs").write_text("")
        self.let_agent(answer=10)
        self.world.put()
        program = self.world.program(WORK)
        thread = self.world.start(program)
        actions: list[Callable[[], object]] = [
            partial(self.step, thread),
            partial(self.step, thread),
            partial(self.world.start, program),
            partial(self.pause, thread),
        ]
        for _ in range(self.chance.randrange(2, 7)):
            self.let_agent(answer=self.chance.choice([10, 100_000]), is_filling=True)
            if self.chance.random() < 0.8:
                self.fill(self.chance.randrange(MOST_LEFT_BYTES))
            self.attempt(self.chance.choice(actions))
            if self.chance.random() < 0.5:
                self.free()
        self.free()
        self.let_agent(answer=10)
        self.check()
        return len(self.failed)

    def step(self, thread: ThreadId) -> None:
        """Take the next step, if there is one."""
        if self.is_active(thread):
            self.resume(thread)
            self.world.step(thread, agent_player(None))

    def pause(self, thread: ThreadId) -> None:
        """Pause and resume a thread, if it has not ended."""
        if self.is_active(thread):
            self.resume(thread)
            self.world.pause(thread)
            self.resume(thread)

    def resume(self, thread: ThreadId) -> None:
        """Resume a thread that is paused."""
        if self.world.snapshot(thread).record.status == "paused":
            self.world.resume(thread)

    def let_agent(self, *, answer: int, is_filling: bool = False) -> None:
        """Say what the agent does: the length of its answer, and when it fills the disk."""
        fill = f"cat /dev/zero >{self.disk}/filled 2>/dev/null\n"
        when = self.chance.choice(["before", "after", "never"]) if is_filling else "never"
        for each in ("before", "after"):
            (self.world.place / each).write_text(fill if each == when else "")
        (self.world.place / "answer").write_text("x" * answer)

    def fill(self, left_bytes: int) -> None:
        """Fill the disk until about *left_bytes* are free."""
        found = os.statvfs(self.disk)
        free = found.f_bavail * found.f_frsize - left_bytes
        with (self.disk / "ballast").open("ab") as file:
            file.write(bytes(max(0, free)))

    def free(self) -> None:
        """Let the disk have room again."""
        for name in ("ballast", "filled"):
            (self.disk / name).unlink(missing_ok=True)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do *action*: it is done whole, or says that the disk is full."""
        try:
            action()
        except (OSError, UwfError) as error:
            assert FULL in str(error), error  # noqa: PT017 - more than its text would be too much
            self.failed.append(str(error))
        self.world.reopen()

    def check(self) -> None:
        """Check that every thread goes on to its end, with one run of an agent for each step."""
        store = self.world.store
        for _ in range(5):
            for thread in list_threads(store, archived=False):
                self.step(thread)
        ended = list_threads(store, archived=True)
        assert list_threads(store, archived=False) == []
        steps = sum(self.world.snapshot(thread).record.depth for thread in ended)
        assert (self.world.place / "runs").read_text().splitlines() == ["run"] * steps
        assert find_troubles(store) == ()
        check_with_git(self.world)

    def is_active(self, thread: ThreadId) -> bool:
        """Return whether a thread has not ended."""
        return thread in list_threads(self.world.store, archived=False)
