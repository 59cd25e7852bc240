"""uwf.maxRunning: at most so many agents at once, also when engines are killed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands.at_work import wait_for, wait_until
from commands.flows import split_checks
from commands.world import World
from refusing import refuses

from uwf_git.commands.agent_run.max_running import read_max_running
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.running import find_running
from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.control.pause import pause_thread
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.git.config import GitConfig, set_config

ANSWER = """echo '{"meta": {"text": "x", "ok": true}}'"""

# Marks its beginning and its end; each mark is one write to a file opened for appending.
MARKED = f"""
echo + >>marks
sleep 0.03
echo - >>marks
{ANSWER}
"""

# Says that it began, and goes on when the file `go` is there.
SLOW = f"""
echo $$ >>ran
until [ -e go ]; do sleep 0.02; done
{ANSWER}
"""

WITH_DAEMON = f"""
(until [ -e go ]; do sleep 0.02; done) >/dev/null 2>&1 &
{ANSWER}
"""

# Steps another thread, as one does that has a workflow for a part of its work.
KILLED_WITH_DAEMON = """
setsid sh -c 'echo $$ >daemon; until [ -e go ]; do sleep 0.02; done' >/dev/null 2>&1 &
until [ -s daemon ]; do sleep 0.01; done
echo $$ >>ran
until [ -e go ]; do sleep 0.02; done
"""

WITHIN = f"""
uwf thread step $(cat inner) >within
{ANSWER}
"""


def limit(world: World, value: str) -> None:
    set_config(f"{world.store.path}/config", "uwf.maxRunning", value)
    world.reopen()


@pytest.fixture
def slow(world: World) -> Iterator[ThreadId]:
    """Begin a thread whose agent waits to be let go, where one may run at once."""
    limit(world, "1")
    yield world.start(world.program(SLOW), workflow=world.put().workflow)
    (world.place / "go").touch()


def second(world: World, script: str = ANSWER) -> ThreadId:
    return world.start(world.program(script, name="other"))


def begin(world: World, thread: ThreadId) -> subprocess.Popen[bytes]:
    """Begin a step in another process, and wait until its agent is at work."""
    engine = world.process("thread", "step", thread)
    wait_for(world.place / "ran")
    return engine


def waiting(world: World, thread: ThreadId) -> subprocess.Popen[bytes]:
    """Begin a step in another process, and wait until it says that it waits."""
    engine = world.process("thread", "step", thread)
    assert engine.stderr is not None
    told = engine.stderr.readline()
    assert told == b"note: 1 agent runs already (uwf.maxRunning); waiting\n"
    return engine


def ended(engine: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for the end of a process; return its exit status and what it said on stderr."""
    with engine:
        _, err = engine.communicate()
    return engine.returncode, err.decode()


@pytest.mark.parametrize(("value", "most"), [(None, 0), ("", 0), ("0", 0), ("1", 1), ("200", 200)])
def test_limit_is_a_number_and_none_is_none(value: str | None, most: int) -> None:
    config = GitConfig({} if value is None else {"uwf.maxrunning": [value]})
    assert read_max_running(config) == most


@pytest.mark.parametrize("value", ["-1", "two", "1.5", "1k", "10001", "9" * 5000, "٣", " 1"])
def test_limit_that_means_nothing_is_refused_before_anything_runs(value: str, world: World) -> None:
    limit(world, value)
    world.put()
    thread = world.start(world.program("echo ran >>ran; " + ANSWER))

    with refuses("bad-max-running") as caught:
        world.step(thread, agent_player(None))

    assert caught.value.exit_status == 1
    assert "uwf config set uwf.maxRunning 2" in (caught.value.hint or "")
    assert not (world.place / "ran").exists()
    assert world.snapshot(thread).record.event == "start"


def test_sixty_threads_run_two_at_a_time_and_all_finish(world: World) -> None:
    limit(world, "2")
    world.put()
    program = world.program(MARKED)
    threads = [world.start(program) for _ in range(60)]

    engines = [world.process("thread", "step", thread) for thread in threads]
    told = [ended(engine) for engine in engines]

    assert [(status, err) for status, err in told if status] == []
    assert {world.snapshot(thread).record.depth for thread in threads} == {1}
    running = most = 0
    marks = (world.place / "marks").read_text().split()
    for mark in marks:
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert (marks.count("+"), marks.count("-"), most) == (60, 60, 2)
    # Each process reported at most once that it waits.
    assert all(err.count("waiting") <= 1 for _, err in told)
    assert any("waiting" in err for _, err in told)


def test_wait_is_reported_once_and_holds_the_thread(world: World, slow: ThreadId) -> None:
    other = second(world)
    first = begin(world, slow)
    waiter = waiting(world, other)

    running = find_running(world.store, other)
    (world.place / "go").touch()

    assert running is not None
    assert (running.pid, running.role, running.group) == (waiter.pid, "writer", None)
    assert ended(first) == (0, "")
    assert ended(waiter) == (0, "")
    assert world.snapshot(other).record.depth == 1


def test_ctrl_c_ends_the_waiting_and_records_nothing(world: World, slow: ThreadId) -> None:
    other = second(world)
    first = begin(world, slow)
    waiter = waiting(world, other)

    waiter.send_signal(signal.SIGINT)

    assert ended(waiter)[0] == 130
    assert world.snapshot(other).record.event == "start"
    (world.place / "go").touch()
    assert ended(first)[0] == 0
    assert world.step(other, agent_player(None)).depth == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_thread_that_waits_can_be_paused_at_once(
    world: World, slow: ThreadId, *, is_first: bool
) -> None:
    engines = [begin(world, slow)]
    if not is_first:
        engines.append(waiting(world, second(world)))
    other = second(world)
    waiter = world.process("thread", "step", other)
    assert waiter.stderr is not None
    assert b"waiting" in waiter.stderr.readline()

    pause_thread(world.store, world.caller, other, reason="not today", now=True)

    status, err = ended(waiter)
    assert status == 1
    assert f"error: thread {other} is paused" in err
    assert find_running(world.store, other) is None
    (world.place / "go").touch()
    assert [ended(engine)[0] for engine in engines] == [0] * len(engines)


def test_thread_that_waits_can_be_killed(world: World, slow: ThreadId) -> None:
    other = second(world)
    first = begin(world, slow)
    waiter = waiting(world, other)

    kill_thread(world.store, world.caller, other, reason="not needed")

    assert world.snapshot(other).record.status == "killed"
    assert ended(waiter)[0] == 4
    (world.place / "go").touch()
    assert ended(first)[0] == 0


def test_branch_that_waits_is_held_when_its_thread_is_paused(world: World, slow: ThreadId) -> None:
    at = split_checks(world)
    first = begin(world, slow)
    agent = world.program(ANSWER, name="other")
    waiter = world.process("thread", "step", at.children[0], "--agent", agent)
    assert waiter.stderr is not None
    assert b"waiting" in waiter.stderr.readline()

    pause_thread(world.store, world.caller, at.thread)

    status, err = ended(waiter)
    assert status == 1
    assert f"is a branch of {at.thread}, which is paused" in err
    (world.place / "go").touch()
    assert ended(first)[0] == 0


def test_thread_that_moved_while_its_step_waited_is_not_stepped(
    world: World, slow: ThreadId
) -> None:
    other = second(world)
    start = world.snapshot(other).commit.oid
    world.step(other)
    elsewhere = world.snapshot(other).commit.oid
    refs = world.store.refs
    assert refs.advance(f"refs/threads/{other}", seen=elsewhere, to=start)
    first = begin(world, slow)
    waiter = waiting(world, other)

    # As a push does: without asking for the lock.
    assert refs.advance(f"refs/threads/{other}", seen=start, to=elsewhere)

    status, err = ended(waiter)
    assert status == 4
    assert f"thread {other} moved on" in err
    (world.place / "go").touch()
    assert ended(first)[0] == 0


def test_agent_whose_engine_was_killed_still_counts(world: World, slow: ThreadId) -> None:
    other = second(world)
    engine = begin(world, slow)
    engine.kill()
    assert ended(engine)[0] == -signal.SIGKILL

    waiter = waiting(world, other)
    # The engine that records the result of a finished agent needs no slot.
    next_engine = world.process("thread", "step", slow)
    assert next_engine.stderr is not None
    assert b"still at work" in next_engine.stderr.readline()
    (world.place / "go").touch()

    assert ended(next_engine)[0] == 0
    assert ended(waiter) == (0, "")
    assert len((world.place / "ran").read_text().split()) == 1


def test_killed_engine_and_agent_hold_no_slot(world: World, slow: ThreadId) -> None:
    engine = begin(world, slow)
    engine.kill()
    ended(engine)
    running = find_running(world.store, slow)
    assert running is not None
    assert running.group is not None
    os.killpg(running.group, signal.SIGKILL)

    assert world.step(second(world), agent_player(None)).depth == 1


def test_daemon_that_an_agent_left_behind_holds_no_slot(world: World) -> None:
    limit(world, "1")
    world.put()
    thread = world.start(world.program(WITH_DAEMON))
    try:
        for depth in (1, 2):
            assert world.step(thread, agent_player(None)).depth == depth
    finally:
        (world.place / "go").touch()


def test_daemon_of_an_agent_that_was_killed_with_its_engine_holds_no_slot(world: World) -> None:
    limit(world, "1")
    killed = world.start(world.program(KILLED_WITH_DAEMON), workflow=world.put().workflow)
    engine = begin(world, killed)
    engine.kill()
    engine.communicate()
    os.killpg(os.getpgid(int((world.place / "ran").read_text())), signal.SIGKILL)
    try:
        assert world.step(second(world), agent_player(None)).depth == 1
    finally:
        (world.place / "go").touch()


def test_agent_that_works_for_another_agent_does_not_wait_for_it(world: World) -> None:
    limit(world, "1")
    world.put()
    inner = second(world)
    (world.place / "inner").write_text(inner)
    outer = world.start(world.program(WITHIN))

    assert world.step(outer, agent_player(None)).depth == 1

    assert json.loads((world.place / "within").read_text())["thread"] == inner
    assert world.snapshot(inner).record.depth == 1


def test_agent_of_an_agent_does_not_wait_for_a_slot(
    world: World,
) -> None:
    limit(world, "1")
    world.put()
    inner, other = second(world), second(world)
    (world.place / "inner").write_text(inner)
    script = f"echo $$ >>ran\nuntil [ -e go ]; do sleep 0.02; done\n{WITHIN}"
    outer = world.start(world.program(script))
    engine = begin(world, outer)
    waiter = waiting(world, other)

    (world.place / "go").touch()

    try:
        wait_until(lambda: engine.poll() is not None, "they wait for each other")
    finally:
        if engine.poll() is None:
            waiter.kill()
    assert [ended(each)[0] for each in (engine, waiter)] == [0, 0]
    world.reopen()
    assert [world.snapshot(each).record.depth for each in (outer, inner, other)] == [1, 1, 1]


def test_without_a_limit_nothing_is_counted(world: World) -> None:
    world.put()
    world.step(second(world), agent_player(None))

    assert not Path(os.environ["HOME"], ".uwf", "slots").exists()


def test_limit_of_the_user_holds_for_all_stores(world: World) -> None:
    place = Path(os.environ["HOME"], ".gitconfig")
    place.write_text("[uwf]\n\tmaxRunning = 1\n")
    world.reopen()
    world.put()

    world.step(second(world), agent_player(None))

    assert list(Path(os.environ["HOME"], ".uwf", "slots").glob("*/0"))
