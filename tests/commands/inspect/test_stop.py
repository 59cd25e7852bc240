"""Where a thread stands; tests/cli/thread/test_next_line.py has every stop of the program."""

import pytest
from commands.flows import split_checks
from commands.world import World

from uwf_git.commands.inspect.show import read_stop
from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.store.threads.lock import lock_drive, lock_thread


def test_next_role_is_told_until_the_end(world: World) -> None:
    thread = world.begun()
    seen = []
    for _ in range(3):
        seen.append(read_stop(world.store, thread).next)
        world.step(thread)

    assert seen == ["writer", "checker", "$END"]
    assert read_stop(world.store, thread).next is None


def test_thread_at_work_elsewhere_is_waited_for(world: World) -> None:
    thread = world.begun()
    process = world.process("thread", "run", thread, "--agent", world.program("exec sleep 60"))
    try:
        while "thread wait" not in read_stop(world.store, thread).advice.text:
            assert process.poll() is None
    finally:
        world.process("thread", "kill", thread).communicate()
        process.communicate()


def test_own_drive_is_not_waited_for(world: World) -> None:
    thread = world.begun()

    with lock_drive(world.store, thread, since_ms=0), lock_thread(world.store, thread, since_ms=0):
        assert "thread run" in read_stop(world.store, thread).advice.text


def test_default_agents_play_roles_without_one(world: World) -> None:
    world.put()
    request = StartRequest("demo", "Do it.")
    thread = start_thread(world.store, world.caller, request, thread=world.new_id()).thread

    assert "no agent is bound to writer" in read_stop(world.store, thread).advice.text
    assert "thread answer" in read_stop(world.store, thread, default="human").advice.text
    assert "thread run" in read_stop(world.store, thread, default="x").advice.text


@pytest.mark.parametrize("verb", ["run", "step"])
def test_a_split_thread_at_work_elsewhere_is_waited_for(world: World, verb: str) -> None:
    split = split_checks(world)
    assert "its branches go on" in read_stop(world.store, split.thread).advice.text
    agent = world.program("exec sleep 60")
    # A step holds the locks of branches only, a run that of the thread as well.
    process = world.process("thread", verb, split.thread, "--agent", agent)
    try:
        expected = f"`uwf thread wait {split.thread}` waits until it stops"
        while read_stop(world.store, split.thread).advice.text != expected:
            assert process.poll() is None
    finally:
        world.process("thread", "kill", split.thread).communicate()
        process.communicate()
