from collections.abc import Callable
from typing import Any

import pytest
from commands.world import World

from uwf_git.commands.control.steer import kill_thread, pause_thread
from uwf_git.commands.drive.background import wait_in_status
from uwf_git.model.names import ThreadId

NEVER = 0


class Sleeper:
    """A clock that is moved by its sleep alone."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.while_asleep: Callable[[], Any] = lambda: None

    def now_ms(self) -> int:
        """Return the time: the sum of all sleeps."""
        return round(1000 * sum(self.slept))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)
        self.while_asleep()


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


def wait(world: World, thread: ThreadId, sleeper: Sleeper, seconds: float) -> float:
    clock = (sleeper.now_ms, NEVER)
    wait_in_status(world.store, (thread, "ready"), seconds, until=clock, sleep=sleeper.sleep)
    return sum(sleeper.slept)


def test_clock_that_is_set_back_makes_no_retry_late(world: World, sleeper: Sleeper) -> None:
    sleeper.now_ms = lambda: 0  # type: ignore[method-assign]  # a clock that was set

    assert wait(world, world.begun(), sleeper, 1) == pytest.approx(1)


def test_thread_is_looked_at_often_and_in_a_long_wait_less(world: World, sleeper: Sleeper) -> None:
    wait(world, world.begun(), sleeper, 61)

    assert (sleeper.slept[0], sleeper.slept[10]) == (1.0, 0.2)


@pytest.mark.parametrize("change", [pause_thread, kill_thread])
def test_change_of_the_status_ends_the_wait(change: Any, world: World, sleeper: Sleeper) -> None:
    thread = world.begun()
    sleeper.while_asleep = lambda: change(world.store, world.caller, thread)

    assert wait(world, thread, sleeper, 50) == pytest.approx(0.2)


def test_thread_that_is_gone_ends_the_wait(world: World, sleeper: Sleeper) -> None:
    thread = world.begun()
    oid = world.store.refs.find(f"refs/threads/{thread}")
    assert oid is not None
    sleeper.while_asleep = lambda: world.store.refs.delete(f"refs/threads/{thread}", seen=oid)

    assert wait(world, thread, sleeper, 50) == pytest.approx(0.2)
