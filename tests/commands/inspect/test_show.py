"""Where a thread stands; tests/cli/thread/test_next_line.py has every stop of the program."""

import os

import pytest
from commands.flows import split_checks
from commands.world import World, says

from uwf_git.commands.inspect.show import read_stop, show_thread
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.turn import Played, Turn


def test_new_thread_stands_at_its_start(world: World) -> None:
    thread = world.begun()
    snapshot = world.snapshot(thread)

    shown = show_thread(world.store, thread)

    assert {name: shown[name] for name in ("thread", "workflow", "status", "head")} == {
        "thread": thread,
        "workflow": snapshot.record.workflow,
        "status": "ready",
        "head": snapshot.record.node,
    }
    assert (shown["depth"], shown["prompt"], shown["step"]) == (0, "Do it.", None)
    assert (shown["currentNode"], shown["currentIteration"]) == ("writer", 1)
    assert (shown["lastNode"], shown["next"], shown["endTime"]) == (None, "writer", None)
    assert (shown["error"], shown["lastAttempt"], shown["attempts"]) == (None, None, 0)
    assert shown["agents"] == {"writer": "nobody", "checker": "nobody"}
    assert shown["workdir"] == str(world.place)
    assert "steps" not in shown


def test_thread_that_is_at_work_is_running(world: World) -> None:
    thread = world.begun()
    seen = []

    def play(turn: Turn) -> Played:
        seen.append(show_thread(world.store, thread))
        return says({"text": "x"})(turn)

    world.step(thread, play)

    assert seen[0]["status"] == "running"
    running = seen[0]["running"]
    assert (running["role"], running["agent"], running["driven"]) == ("writer", "nobody", False)
    assert running["pid"] == os.getpid()
    after = show_thread(world.store, thread)
    assert after["status"] == "ready"
    assert "running" not in after


def test_paused_thread_says_why_whatever_came_since(world: World) -> None:
    thread = world.begun()
    world.pause(thread, reason="Wait for Ann.")
    world.patch(thread, {"a": 1}, reason="Ann said so.")

    shown = show_thread(world.store, thread)

    assert (shown["status"], shown["pausedFrom"]) == ("paused", "ready")
    assert shown["reason"] == "Wait for Ann."


def test_thread_at_work_elsewhere_is_waited_for(world: World) -> None:
    thread = world.begun()
    process = world.process("thread", "run", thread, "--agent", world.program("exec sleep 60"))
    try:
        while "thread wait" not in read_stop(world.store, thread).advice.text:
            assert process.poll() is None
    finally:
        world.process("thread", "kill", thread).communicate()
        process.communicate()


def test_default_agents_play_roles_without_one(world: World) -> None:
    world.put()
    thread = world.begin(StartRequest("demo", "Do it."))

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
