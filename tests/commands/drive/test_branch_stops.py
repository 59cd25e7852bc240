"""What ends the drive of several branches; test_flows.py has the drives that go well."""

import threading
import time
from contextlib import ExitStack

import pytest
from commands.flows import plays, split_checks
from commands.world import World, replied

from uwf_git.agents.group import check_cancelled
from uwf_git.commands.drive_thread import (
    Driven,
    DriveRequest,
    Sleep,
    Watcher,
    drive_thread,
)
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import lock_thread

PAIR = """\
name: pair
description: Both at once.
root:
  type: parallel
  nodes:
    - {type: agent, agentId: first}
    - {type: agent, agentId: second}
"""


def drive(
    world: World, thread: ThreadId, play: Player, *, jobs: int, sleep: Sleep = time.sleep
) -> Driven:
    def ignore(*_args: object) -> None:
        return

    request = DriveRequest(StepRequest(thread, play, jobs=jobs), sleep=sleep)
    watcher = Watcher(ignore, ignore, ignore)
    return drive_thread(world.store, world.caller, request, watcher=watcher)


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
        driven = drive(world, split.thread, plays, jobs=1, sleep=sleep)
    late.cancel()

    assert (driven.stopped, len(slept)) == ("end", 1)
