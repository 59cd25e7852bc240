"""What ends the drive of several branches; test_flows.py has the drives that go well."""

import errno
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from commands.at_work import BEGUN, RESULT, begin
from commands.flows import plays, split_checks
from commands.turns import drive
from commands.world import World, replied

from uwf_git.agents.group import check_cancelled
from uwf_git.commands.background import AtRest, StillAtWork, WaitRequest, wait_for_threads
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import lock_drive, lock_thread

PAIR = """\
name: pair
root:
  type: parallel
  nodes:
    - {type: agent, agentId: first}
    - {type: agent, agentId: second}
"""


def test_what_interrupts_one_branch_ends_the_agents_of_the_others(world: World) -> None:
    has_begun, never = threading.Event(), threading.Event()
    ended: list[str] = []

    def play(turn: Turn) -> Played:
        if turn.role == "first":
            assert has_begun.wait(10)
            raise KeyboardInterrupt
        has_begun.set()
        until = time.monotonic() + 10
        try:
            while time.monotonic() < until:
                check_cancelled()
                never.wait(0.01)
        except KeyboardInterrupt:
            ended.append(turn.role)
            raise
        return replied({})

    with pytest.raises(KeyboardInterrupt):
        drive(world, world.begun(PAIR), play, jobs=2)
    assert ended == ["second"]


def step_all(world: World, thread: ThreadId, play: Player) -> None:
    step_thread(world.store, world.caller, StepRequest(thread, play, jobs=2))


@pytest.mark.parametrize(("run", "count"), [(partial(drive, jobs=2), 2), (step_all, 3)])
def test_a_full_disk_in_one_branch_ends_no_agent_of_another(
    world: World, run: Callable[[World, ThreadId, Player], Any], count: int
) -> None:
    both = threading.Barrier(2)
    begun: list[ThreadId] = []

    def play(turn: Turn) -> Played:
        begun.append(turn.thread)
        if turn.thread in begun[:2]:
            both.wait(10)
        if turn.thread == begun[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        # Whoever stops this one has a moment for it.
        for _ in range(20):
            check_cancelled()
            time.sleep(0.01)
        return replied({})

    thread = world.stepped(source=PAIR + "    - {type: agent, agentId: third}\n")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        run(world, thread, play)
    # A drive begins no third one.
    assert len(begun) == count
    assert world.events(begun[1]) == ["start", "step"]


def test_a_drive_that_finds_nothing_to_do_sleeps_before_it_looks_again(world: World) -> None:
    split = split_checks(world)
    split.finish_branches()
    joining = ExitStack()
    # Another process joins the branches.
    joining.enter_context(lock_thread(world.store, split.thread, since_ms=0))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        joining.close()

    # A drive that never sleeps would look for ever.
    late = threading.Timer(20, joining.close)
    late.start()
    with joining:
        driven, _ = drive(world, split.thread, plays, sleep=sleep)
    late.cancel()

    assert (driven.stopped, len(slept)) == ("end", 1)


class Waits:
    """Waits for threads of a world; its clock is moved by its sleep alone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rested: list[AtRest] = []
        self.slept: list[float] = []
        self.while_asleep: Callable[[], Any] = lambda: None
        self.environ: dict[str, str] = {}

    def __call__(self, *threads: str, timeout_s: float | None = None) -> list[AtRest]:
        request = WaitRequest(threads, timeout_s, self.environ, self.sleep, lambda: sum(self.slept))
        wait_for_threads(self.world.store, request, on_rest=self.rested.append)
        return self.rested

    def sleep(self, seconds: float) -> None:
        """Be the clock's sleep."""
        assert len(self.slept) < 10_000
        self.slept.append(seconds)
        self.while_asleep()


@pytest.fixture
def wait(world: World) -> Waits:
    return Waits(world)


@pytest.mark.parametrize("lock", [lock_drive, lock_thread])
def test_driven_or_stepped_thread_is_waited_for(lock: Any, world: World, wait: Waits) -> None:
    thread = world.begun()
    held = lock(world.store, thread, since_ms=0)
    with ThreadPoolExecutor(1) as other:
        other.submit(held.__enter__).result()

    def end() -> None:
        if len(wait.slept) == 30:
            held.__exit__(None, None, None)

    wait.while_asleep = end

    assert [each.status for each in wait(thread)] == ["ready"]
    # Often at first, since most that is waited for is short; never in a busy loop.
    assert len(wait.slept) == 30
    assert (wait.slept[0], wait.slept[-1]) == (0.05, 0.5)


def test_threads_are_reported_as_they_come_to_rest(world: World, wait: Waits) -> None:
    first, second = world.begun(), world.start()
    held = lock_drive(world.store, first, since_ms=0)
    held.__enter__()
    wait.while_asleep = lambda: held.__exit__(None, None, None)

    assert [each.thread for each in wait(first, second, first)] == [second, first]


def test_time_to_wait_ends(world: World, wait: Waits) -> None:
    first, second = world.begun(), world.start()

    with (
        lock_drive(world.store, first, since_ms=0),
        pytest.raises(StillAtWork, match=f"thread {first} is still at work after 2 s") as caught,
    ):
        wait(first, second, timeout_s=2)

    assert caught.value.exit_status == 4
    assert sum(wait.slept) == pytest.approx(2)
    assert [each.thread for each in wait.rested] == [second]


def test_driver_that_died_is_not_waited_for(world: World, thread: ThreadId, wait: Waits) -> None:
    # Seen elsewhere: after a kill -9 a thread was "running" for ever.
    path = world.store.local_path("locks", thread) + ".drive"
    with lock_drive(world.store, thread, since_ms=0), open(path, "rb") as file:
        said = file.read().replace(b'"start": ', b'"start": 1')
    with open(path, "wb") as file:
        file.write(said)

    assert [each.status for each in wait(thread)] == ["ready"]
    assert wait.slept == []


def test_agent_whose_engine_was_killed_is_waited_for(world: World, wait: Waits) -> None:
    # As `uwf ps` and `uwf thread list` have it.
    at = begin(world, f"{BEGUN}while [ ! -e go ]; do sleep 0.02; done; {RESULT}")
    at.lose_engine()

    def end() -> None:
        (world.place / "go").touch()
        while at.living():
            time.sleep(0.01)

    wait.while_asleep = end
    try:
        assert [each.status for each in wait(at.thread)] == ["ready"]
        assert wait.slept != []
    finally:
        end()
