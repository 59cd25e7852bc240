import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands.at_work import wait_until
from commands.flows import CHECKS, plays
from commands.world import DEMO, World, fails
from refusing import refuses

from uwf_git.commands.background import Driver, DriverRequest, start_driver
from uwf_git.commands.turn.branches import ThreadNotActive, ThreadNotReady
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import ThreadBusy, find_driver, lock_drive, log_path

ANSWER = """echo '{"meta": {"text": "x", "ok": true}, "content": "Said."}'"""


def start(world: World, thread: str, *words: str, **asked: Any) -> Driver:
    def argv(thread: ThreadId) -> Sequence[str]:
        return [sys.executable, "-m", "uwf_git", "thread", "run", thread, *words]

    return start_driver(world.store, world.caller, DriverRequest(thread, argv, **asked))


def begun(world: World, script: str = ANSWER) -> ThreadId:
    return world.begun(DEMO, world.program(script))


def until_free(world: World, thread: ThreadId) -> None:
    wait_until(lambda: find_driver(world.store, thread) is None, "it is driven on")


def log_of(world: World, thread: ThreadId) -> str:
    return Path(log_path(world.store, thread)).read_text(encoding="utf-8")


@pytest.fixture
def world(world: World) -> World:
    environ = {**os.environ, **world.caller.environ}
    world.caller = world.caller._replace(environ=environ, cwd=str(world.place))
    return world


def test_thread_that_has_split_is_driven_in_the_background(world: World) -> None:
    thread = world.begun(CHECKS, world.program(ANSWER))
    for _ in range(2):
        world.step(thread, plays)
    assert world.snapshot(thread).record.status == "split"

    start(world, thread)
    until_free(world, thread)

    assert world.snapshot(thread).record.status == "completed", log_of(world, thread)


def test_thread_that_is_driven_is_not_driven_twice(world: World) -> None:
    # Seen elsewhere: check-then-create let both pass.
    thread = begun(world)

    with lock_drive(world.store, thread, since_ms=0), pytest.raises(ThreadBusy):
        start(world, thread)

    assert not Path(log_path(world.store, thread)).exists()


def test_mistakes_are_reported_before_a_start(world: World) -> None:
    thread = begun(world)
    with refuses("no-such-role"):
        start(world, thread, until="nobody")
    world.fail(thread)
    with pytest.raises(ThreadNotReady, match="has failed"):
        start(world, thread)
    world.kill(thread)
    with pytest.raises(ThreadNotActive):
        start(world, thread)

    assert not Path(log_path(world.store, thread)).exists()


def test_thread_that_waits_for_a_limit_is_driven_if_the_driver_sleeps(world: World) -> None:
    thread = begun(world)
    until = int(time.time() * 1000) + 10**8
    world.fail(thread, fails(kind="usage-limit", left=StepFiles(reset_at=until)))
    with pytest.raises(ThreadNotReady, match="waits until"):
        start(world, thread)

    driver = start(world, thread, "--wait", wait=True)

    assert (find_driver(world.store, thread) or {})["pid"] == driver.pid
    os.kill(driver.pid, signal.SIGKILL)
    until_free(world, thread)


def test_driver_that_cannot_drive_is_reported_with_its_own_error(world: World) -> None:
    thread = begun(world)
    Path(world.store.local_path("logs")).mkdir(parents=True)
    Path(log_path(world.store, thread)).write_text("error: of long ago\n", encoding="utf-8")

    with refuses("driver-ended") as caught:
        start(world, thread, "--max-steps=0")

    assert "--max-steps" in caught.value.message
    assert "of long ago" not in caught.value.message
    assert caught.value.exit_status == 2
    assert caught.value.hint == "`uwf thread run --help` shows how it is typed"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -9 $$", "(signal 9): it printed nothing"),
        ("echo starts >&2; echo No module named uwf_git >&2; exit 70", "status 70): No module"),
        (r"printf '\033[31merror:\033[0m no key\n' >&2; exit 1", "status 1): no key"),
    ],
)
def test_driver_without_output_is_reported(script: str, said: str, world: World) -> None:
    thread = begun(world)
    program = world.program(script, name="driver")
    asked = DriverRequest(thread, lambda _thread: [program])

    with refuses("driver-ended") as caught:
        start_driver(world.store, world.caller, asked)

    assert said in caught.value.message
    assert caught.value.exit_status == 1
    assert log_path(world.store, thread) in str(caught.value.hint)


def test_driver_that_takes_its_time_is_not_waited_for_for_ever(world: World) -> None:
    slept: list[float] = []
    asked = DriverRequest(begun(world), lambda _thread: ["/bin/sleep", "60"], sleep=slept.append)

    driver = start_driver(world.store, world.caller, asked)

    os.kill(driver.pid, signal.SIGKILL)
    os.waitpid(driver.pid, 0)
    assert sum(slept) == pytest.approx(60)
