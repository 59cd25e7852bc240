"""Many engines at once: no step is lost, none is doubled, and no engine waits in vain."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands.crowd import at_once
from commands.world import Git, World, fails, replied

from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.step.record_turn import WorkKept
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.errors import UwfError
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.history import list_preserved, walk_history
from uwf_git.store.threads.local_files import ThreadBusy

ENDLESS = """\
name: count
roles: {worker: {}}
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: worker, when: depth < 9999}
  - {from: worker, to: $END}
"""
CROWD = 50


def story(world: World, thread: str) -> list[str]:
    tip = world.store.refs.find(f"refs/threads/{thread}")
    assert tip is not None
    return [each.subject for each in walk_history(world.store, tip)][::-1]


def wait_for_moves(ref: Path, moves: int) -> None:
    """Wait until a ref has moved so many times, or some time has passed.

    Forty-nine processes that all try again at once would leave the one at work no processor.
    """
    seen = {ref.read_text()}
    for _ in range(50):
        time.sleep(0.005)
        seen.add(ref.read_text())
        if len(seen) > moves:
            return


def test_of_fifty_processes_on_one_thread_each_step_is_recorded_once(world: World) -> None:
    thread = world.begun(ENDLESS)
    ref = Path(world.store.path, "refs", "threads", thread)

    def act(number: int) -> dict[str, Any]:
        """Step until it worked twice; return the work done, and the holders that blocked it."""
        told: dict[str, Any] = {"pid": os.getpid(), "done": 0}
        losses: set[tuple[int, int | None]] = set()

        def play(_turn: Turn) -> Played:
            told["done"] += 1
            return replied({"n": number}, f"process {number}, time {told['done']}")

        while told["done"] < 2:
            world.reopen()
            try:
                world.step(thread, play)
            except ThreadBusy as busy:
                losses.add((busy.exit_status, busy.facts["holder"].get("pid")))
                wait_for_moves(ref, 1 + number % 4)
        return {**told, "losses": sorted(losses, key=str)}

    told = at_once(CROWD, act)

    world.reopen()
    steps = story(world, thread)[1:]
    assert len(steps) == world.snapshot(thread).record.depth == 2 * CROWD
    assert Counter(steps) == {
        f"worker: process {number}, time {time}": 1 for number in range(CROWD) for time in (1, 2)
    }
    pids = {each["pid"] for each in told}
    losses = [loss for each in told for loss in each["losses"]]
    assert {status for status, _pid in losses} <= {4}
    # A holder is named as soon as it has written its name, which takes it a moment.
    assert {pid for _status, pid in losses if pid is not None} <= pids


def test_fifty_programs_on_one_thread_record_each_step_once(world: World) -> None:
    thread = world.begun(ENDLESS, "true")
    agent = world.program(
        """echo x >> played; while [ ! -e go ]; do sleep 0.01; done; echo '{"meta": {}}'"""
    )
    first = world.process("thread", "step", thread, "--agent", agent)
    while not (world.place / "played").exists():
        assert first.poll() is None
        os.sched_yield()
    rest = [world.process("thread", "step", thread, "--agent", agent) for _ in range(CROWD - 1)]
    outcomes = []
    for process in rest:
        _out, err = process.communicate(timeout=120)
        outcomes.append((process.returncode, f"pid {first.pid}" in err.decode()))
    (world.place / "go").touch()
    first.communicate(timeout=60)

    assert first.returncode == 0
    assert Counter(outcomes) == {(4, True): CROWD - 1}
    assert (world.place / "played").read_text() == "x\n"
    assert world.snapshot(thread).record.depth == 1


def test_fifty_processes_on_fifty_threads_do_not_wait_for_each_other(world: World) -> None:
    workflow = world.put(ENDLESS).workflow
    threads = [world.start(workflow=workflow) for _ in range(CROWD)]
    arrived, say_arrived = os.pipe()
    door, hold_door = os.pipe()
    # It opens the door, by its end, when all agents are at work: were one to wait, none would be.
    doorkeeper = os.fork()
    if doorkeeper == 0:
        signal.alarm(60)
        for _ in range(CROWD):
            os.read(arrived, 1)
        os._exit(0)
    os.close(hold_door)

    def act(number: int) -> int:
        def play(_turn: Turn) -> Played:
            os.write(say_arrived, b"x")
            os.read(door, 1)
            return replied({})

        world.reopen()
        return world.step(threads[number], play).depth

    assert at_once(CROWD, act) == [1] * CROWD
    assert os.waitpid(doorkeeper, 0)[1] == 0, "the agents were never all at work"
    for descriptor in (arrived, say_arrived, door):
        os.close(descriptor)


def test_thread_that_many_end_at_once_ends_once(world: World, git: Git) -> None:
    thread = world.stepped()

    def act(number: int) -> str:
        world.reopen()
        try:
            world.kill(thread, reason=f"process {number}")
        except UwfError as error:
            return error.code
        return "killed"

    told = Counter(at_once(CROWD, act))

    assert told["killed"] == 1
    assert told.keys() <= {"killed", "thread-busy", "thread-not-active"}
    refs = git("for-each-ref", "--format=%(refname)", "refs/threads", "refs/archive",
               cwd=world.store.path)  # fmt: skip
    assert refs == f"refs/archive/{thread}\n"
    assert world.snapshot(thread).record.status == "killed"


def test_fifty_processes_that_start_threads_at_once_get_one_each(world: World) -> None:
    workflow = world.put(ENDLESS).workflow
    ids = [world.new_id() for _ in range(CROWD)]

    def act(number: int) -> str:
        world.reopen()
        world.new_id = lambda: ids[number]
        return world.start(workflow=workflow)

    assert at_once(CROWD, act) == ids
    assert world.store.refs.names("refs/threads/") == sorted(ids)


def test_work_of_an_agent_whose_thread_moved_meanwhile_is_kept_and_taken_up(
    world: World, git: Git
) -> None:
    thread = world.begun()
    ref = f"refs/threads/{thread}"

    def play(turn: Turn) -> Played:
        # As the push of another clone does it, without our lock.
        moved = world.tip(world.fork(thread))
        git("update-ref", ref, moved, turn.snapshot.commit.oid, cwd=world.store.path)
        return replied({"text": "dear"}, "What was paid for.")

    with pytest.raises(WorkKept) as caught:
        world.step(thread, play)

    kept = caught.value.facts["commit"]
    assert caught.value.exit_status == 4
    assert f"uwf thread fork {thread} --at {kept}" in str(caught.value.hint)
    git("gc", "--quiet", "--prune=now", cwd=world.store.path)
    world.reopen()
    assert list_preserved(world.store, thread) == [kept]

    request = ForkRequest(thread, kept)
    forked = fork_thread(world.store, world.caller, request, thread=world.new_id())
    assert world.step(forked.thread).role == "checker"
    assert story(world, forked.thread)[1:] == ["checker: What was said."]
    assert world.snapshot(forked.thread).record.depth == 2
    assert list_preserved(world.store, thread) == []


def test_failed_try_whose_thread_moved_meanwhile_is_nothing_to_keep(world: World) -> None:
    thread = world.begun()
    before = world.tip(thread)

    def play(_turn: Turn) -> Played:
        moved = world.tip(world.fork(thread))
        assert world.store.refs.advance(f"refs/threads/{thread}", seen=before, to=moved)
        return fails()(_turn)

    with pytest.raises(HeadMoved):
        world.step(thread, play)
    assert list_preserved(world.store, thread) == []
