"""A thread is not ended while an orphaned agent works."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands.at_work import BEGUN, HANG, begin, pids
from commands.world import World

from uwf_git.commands.agent_run.runs import AgentLeftRunning, check_nothing_runs
from uwf_git.commands.control.steer import kill_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head


@contextmanager
def run_of(world: World, thread: ThreadId, **files: str) -> Iterator[None]:
    """Write *files* into the run directory of the thread's next step, and hold its lock."""
    run_dir = Path(world.store.local_path("run", thread, get_head(world.store, thread).commit))
    run_dir.mkdir(parents=True)
    for name, content in files.items():
        (run_dir / name).write_text(content)
    with open(f"{run_dir}.alive", "w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        yield


def test_running_agent_is_reported_with_a_kill_command(world: World) -> None:
    at = begin(world, f"{BEGUN}{HANG}")
    at.lose_engine()
    group = os.getpgid(pids(world)[0])

    with pytest.raises(AgentLeftRunning, match=f"process group {group}") as caught:
        check_nothing_runs(world.store, world.snapshot(at.thread))
    os.killpg(group, signal.SIGKILL)

    assert caught.value.exit_status == 4
    assert f"`kill -- -{group}` ends it" in (caught.value.hint or "")


def test_agent_that_cannot_be_seen_is_not_passed(world: World) -> None:
    thread = world.begun()

    with run_of(world, thread), pytest.raises(AgentLeftRunning, match="cannot be seen") as caught:
        kill_thread(world.store, world.caller, thread)

    assert "kill --" not in (caught.value.hint or "")
    assert world.snapshot(thread).record.status == "ready"


@pytest.mark.skipif(not os.path.exists("/proc/self/fdinfo"), reason="there is no /proc here")
def test_daemon_of_a_killed_agent_does_not_block(world: World) -> None:
    thread = world.begun()

    # This process is the daemon: it holds the lock, and no group 4194304 can exist.
    with run_of(world, thread, pid="4194304\n"):
        kill_thread(world.store, world.caller, thread)

    assert world.snapshot(thread).record.status == "killed"


def test_daemon_of_an_ended_agent_does_not_block(world: World) -> None:
    thread = world.begun()

    with run_of(world, thread, pid="4711\n", exit="0\n"):
        kill_thread(world.store, world.caller, thread)

    assert world.snapshot(thread).record.status == "killed"
