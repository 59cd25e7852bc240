"""Running threads: processes are named while they work, and no others."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands.at_work import wait_for, wait_until
from commands.counting import count_reads
from commands.world import World

from uwf_git.commands.agent_run.runs import (
    Running,
    find_running,
    list_running,
    running_rows,
)
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.logs import find_run_dir
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import ThreadBusy, lock_drive, lock_thread

# An agent that says that it began, and goes on when the file `go` is there.
SLOW = """
echo $$ >>ran
until [ -e go ]; do sleep 0.02; done
echo '{"meta": {"text": "x", "ok": true}}'
"""

NEVER_MS = 10**15


@pytest.fixture
def slow(world: World) -> Iterator[ThreadId]:
    """Start a thread whose agent waits for the file `go`; end it afterwards."""
    yield world.start(world.program(SLOW), workflow=world.put().workflow)
    (world.place / "go").touch()


def begin(world: World, thread: ThreadId) -> subprocess.Popen[bytes]:
    """Begin a step in another process, and wait until its agent is at work."""
    engine = world.process("thread", "step", thread)
    wait_for(world.place / "ran")
    return engine


def kill(engine: subprocess.Popen[bytes]) -> None:
    with engine:
        engine.send_signal(signal.SIGKILL)
        engine.communicate()


def statuses(world: World, *wanted: str) -> list[str]:
    return [
        row["status"]
        for row in list_thread_rows(world.store, ListRequest(statuses=frozenset(wanted)))
    ]


def test_step_is_named_with_its_role_agent_engine_and_group(world: World, slow: ThreadId) -> None:
    with begin(world, slow) as engine:
        running = find_running(world.store, slow)
        rows = running_rows(world.store, now_ms=NEVER_MS)
        shown = statuses(world)
        agent = int((world.place / "ran").read_text())
        group = os.getpgid(agent)
        (world.place / "go").touch()
        engine.communicate()

    assert running is not None
    since = running.since
    assert since is not None
    known = Running(slow, "writer", "agent", engine.pid, group, since, is_driven=False)
    assert running._replace(last_output=None) == known
    assert running.last_output is not None
    assert running.last_output >= since
    workflow = world.snapshot(slow).record.workflow
    assert rows == [
        {
            "thread": slow,
            "status": "running",
            "workflow": workflow,
            "workflowName": "demo",
            "role": "writer",
            "agent": "agent",
            "pid": engine.pid,
            "group": group,
            "since": since,
            "elapsedMs": NEVER_MS - since,
            "driven": False,
            "lastOutput": running.last_output,
        }
    ]
    assert shown == ["running"]
    assert find_running(world.store, slow) is None


def test_pain_19_foreground_run_shows_as_running_between_its_steps(world: World) -> None:
    """A marker that only background runs had let others step in between."""
    thread = world.begun()
    with lock_drive(world.store, thread, since_ms=3):
        for _ in range(2):
            running = find_running(world.store, thread)
            assert running == Running(thread, None, None, os.getpid(), None, 3, is_driven=True)
            assert list_running(world.store) == [running]
            assert statuses(world, "running") == ["running"]
            assert statuses(world, "ready") == []
            with pytest.raises(ThreadBusy):
                world.step(thread)
    assert find_running(world.store, thread) is None
    assert world.step(thread).depth == 1


def test_pain_20_reused_group_is_not_running(world: World, slow: ThreadId) -> None:
    kill(begin(world, slow))
    run = find_run_dir(world.store, slow)
    assert run is not None
    group = int(Path(run.path, "pid").read_text())
    os.killpg(group, signal.SIGKILL)
    wait_until(lambda: find_running(world.store, slow) is None, "its agent never ended")

    # Somebody else's group now, and it lives.
    Path(run.path, "pid").write_text(f"{os.getpgrp()}\n")

    assert find_running(world.store, slow) is None
    assert statuses(world) == ["ready"]


def test_pain_20_agent_whose_engine_was_killed_is_running_without_an_engine(
    world: World, slow: ThreadId
) -> None:
    kill(begin(world, slow))

    (running,) = list_running(world.store)
    shown = statuses(world)

    assert (running.thread, running.pid, running.role, running.agent, running.is_driven) == (
        slow, None, "writer", "agent", False
    )  # fmt: skip
    assert running.group is not None
    os.killpg(running.group, 0)
    assert running.since is not None
    assert shown == ["running"]
    (world.place / "go").touch()
    wait_until(lambda: list_running(world.store) == [], "its agent never ended")
    assert statuses(world) == ["ready"]


def test_values_of_another_kind_in_a_held_lock_do_no_harm(world: World) -> None:
    thread = world.begun()
    with lock_thread(world.store, thread, since_ms=1):
        path = Path(world.store.local_path("locks", thread))
        path.write_text('{"pid": "x", "since": "y", "role": 7, "agent": [1]}')
        running = find_running(world.store, thread)

    assert running == Running(thread, "7", "[1]", None, None, None, is_driven=False)


def test_damaged_thread_at_work_is_a_row_all_the_same(world: World) -> None:
    thread = world.begun()
    with lock_thread(world.store, thread, since_ms=1) as lock:
        lock.say("writer", "agent")
        Path(world.store.local_path("run", thread)).mkdir(parents=True)
        Path(world.store.path, "refs", "threads", thread).write_text("garbage\n")
        (row,) = running_rows(world.store, now_ms=0)

    assert (row["thread"], row["role"], row["workflowName"]) == (thread, "writer", None)
    assert row["elapsedMs"] == 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_what_an_agent_left_is_a_row_until_it_ends(world: World, tmp_path: Path) -> None:
    thread, other = world.begun(), world.begun()
    told = {"UWF_REPO": world.store.path, "UWF_THREAD_ID": thread, "UWF_ROLE": "writer"}
    environs = [
        {**told, "UWF_STEP_DIR": str(tmp_path / "gone")},
        # Its turn goes on; another store's.
        {**told, "UWF_STEP_DIR": str(tmp_path)},
        {**told, "UWF_STEP_DIR": str(tmp_path / "gone"), "UWF_REPO": "/elsewhere"},
    ]
    left = [subprocess.Popen(["/bin/sleep", "60"], env=environ) for environ in environs]
    try:
        (row,) = running_rows(world.store, now_ms=0, root=thread)
        assert running_rows(world.store, now_ms=0, root=other) == []
    finally:
        for each in left:
            each.kill()
            each.wait()

    assert (row["thread"], row["status"], row["role"]) == (thread, "left", "writer")
    assert (row["agent"], row["pid"]) == ("sleep", left[0].pid)
    assert running_rows(world.store, now_ms=0) == []


def test_only_threads_with_traces_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        world.step(world.begun())
    at_work = world.begun()
    counted = count_reads(monkeypatch)
    with lock_thread(world.store, at_work, since_ms=1):
        rows = running_rows(world.store, now_ms=1)
    monkeypatch.undo()

    assert [row["thread"] for row in rows] == [at_work]
    # Its tip, and nothing of the others.
    assert counted.objects == [world.tip(at_work).encode()]
