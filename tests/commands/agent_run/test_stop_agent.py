"""Agents that resist a stop, in real processes, are stopped."""

import os
import signal
import time
from pathlib import Path

import pytest
from commands.at_work import (
    BEGUN,
    HANG,
    RESULT,
    AtWork,
    begin,
    is_alive,
    pids,
    wait_until,
    wait_until_gone,
)
from commands.world import World

from uwf_git.agents.command_line import DEFAULT_GRACE_S
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import find_running, stop_agents
from uwf_git.store.threads.local_files import ThreadBusy

# The grace, and the time that two slow processors need to start and end processes.
LONGEST_S = DEFAULT_GRACE_S + 5

OBEDIENT = f"echo half; echo thinking >&2; {BEGUN}{HANG}"
STUBBORN = f"trap '' TERM; echo half; echo thinking >&2; {BEGUN}{HANG}"
FLOODING = f"{BEGUN}while :; do echo half; done"
SILENT = f"{BEGUN}exec sleep 1000"
STOPPED = f"echo half; (sleep 0.05; kill -STOP $$; echo x >stopped) & {BEGUN}{HANG}"
# Its children ignore the request, and the last has closed every file that it had.
FORKING = f"""\
(trap '' TERM; sh -c 'echo $$ >>pids; echo x >first; while :; do sleep 0.05; done') &
(trap '' TERM; python3 -c "
import subprocess
script = 'echo $$ >>pids; echo x >second; while :; do sleep 0.05; done'
subprocess.Popen(['sh', '-c', script], close_fds=True, stdout=subprocess.DEVNULL)
") &
while [ ! -s first ] || [ ! -s second ]; do sleep 0.01; done
echo half
{BEGUN}{HANG}"""
POLITE = f"finish() {{ {RESULT} exit 0; }}; trap finish TERM; {BEGUN}{HANG}"


pytestmark = pytest.mark.usefixtures("nobody_is_left")


def timed_pause(at: AtWork, reason: str = "it went astray") -> None:
    """Pause at once, in good time."""
    began = time.monotonic()
    paused = at.world.pause(at.thread, reason=reason, now=True)
    assert time.monotonic() - began < LONGEST_S
    assert paused.status == "paused"


def stopped(why: str) -> dict[str, str]:
    """Return the error of an attempt that was ended, by its reason."""
    return {"kind": "interrupted", "message": f"it was stopped: {why}"}


@pytest.fixture
def at(world: World) -> AtWork:
    """Return a step whose agent ends when it is asked to."""
    return begin(world, OBEDIENT)


@pytest.mark.parametrize(
    "script",
    [OBEDIENT, STUBBORN, FLOODING, SILENT, FORKING],
    ids=["obedient", "stubborn", "flooding", "silent", "forking"],
)
def test_pause_ends_the_agent_and_keeps_its_output(script: str, world: World) -> None:
    at = begin(world, script)

    timed_pause(at)

    assert at.living() == []
    status, told = at.finish()
    assert status == 130
    assert "uwf thread resume" in told
    assert at.snapshot().record.status == "paused"
    attempt = at.attempt()
    assert attempt["error"] == stopped("it went astray")
    if script != SILENT:
        assert str(attempt["content"]).startswith("half\n")
    if script in {OBEDIENT, STUBBORN}:
        assert attempt["stderr"] == "thinking\n"
    assert at.snapshot().get_present().failures == 0
    at.world.assert_whole()


@pytest.mark.parametrize("script", [OBEDIENT, FORKING], ids=["obedient", "forking"])
def test_agent_is_ended_with_its_thread(script: str, world: World) -> None:
    at = begin(world, script)
    began = time.monotonic()

    world.kill(at.thread, reason="the issue was closed")

    assert time.monotonic() - began < LONGEST_S
    assert at.living() == []
    at.finish()
    snapshot = at.snapshot()
    assert (snapshot.record.status, snapshot.record.event) == ("killed", "kill")
    assert at.attempt()["error"] == stopped("the issue was closed")
    assert not os.path.exists(world.store.local_path("run", at.thread))
    assert not os.path.exists(world.store.local_path("locks", at.thread))
    at.world.assert_whole()


def test_agent_that_has_stopped_itself_is_woken_to_end(world: World) -> None:
    at = begin(world, STOPPED)
    stat = Path(f"/proc/{pids(world)[0]}/stat")
    wait_until(lambda: "T" in stat.read_text().rpartition(")")[2].split()[0], "it never stopped")

    timed_pause(at)

    assert at.living() == []
    at.finish()


def test_result_that_is_handed_in_when_asked_to_stop_counts(world: World) -> None:
    at = begin(world, POLITE)

    timed_pause(at)

    assert at.finish()[0] == 0
    snapshot = at.snapshot()
    assert (snapshot.record.status, snapshot.record.depth) == ("paused", 1)
    assert snapshot.get_head_node().payload["meta"]["text"] == "x"
    assert snapshot.get_present().paused_from == "ready"
    at.world.assert_whole()


def test_result_that_is_handed_in_at_ctrl_c_is_taken_by_the_next_step(world: World) -> None:
    at = begin(world, POLITE)

    at.engine.send_signal(signal.SIGINT)
    _, err = at.engine.communicate()

    assert at.engine.returncode == 130
    assert b"its answer is kept" in err
    assert world.step(at.thread, agent_player(None)).depth == 1
    assert len(pids(world)) == 1


def test_process_that_has_left_the_agent_s_session_is_not_found(world: World) -> None:
    """A documented limit: such a process is a daemon."""
    daemon = "setsid sh -c 'echo $$ >>pids; echo x >daemon; while :; do sleep 0.05; done' &\n"
    at = begin(world, f"{daemon}while [ ! -s daemon ]; do sleep 0.01; done\n{BEGUN}{HANG}")

    timed_pause(at)

    agent, daemon_pid = pids(world)
    assert at.living() == [daemon_pid]
    assert not is_alive(agent)
    at.finish()


def test_agent_whose_engine_was_killed_is_ended_with_its_thread(world: World) -> None:
    at = begin(world, STUBBORN)
    at.lose_engine()
    assert at.living() == pids(world)

    world.kill(at.thread)

    assert at.living() == []
    assert at.snapshot().record.status == "killed"
    at.world.assert_whole()


def test_agent_whose_engine_was_killed_is_ended_by_a_pause_and_recorded_by_the_next_step(
    world: World, at: AtWork
) -> None:
    at.lose_engine()

    timed_pause(at)

    assert at.living() == []
    world.resume(at.thread)
    step = world.process("thread", "step", at.thread)
    _out, err = step.communicate(timeout=60)
    assert step.returncode == 130, err
    attempt = at.attempt()
    assert attempt["error"] == stopped("it went astray")
    assert (attempt["content"], attempt["stderr"]) == ("half\n", "thinking\n")
    assert at.snapshot().record.status == "ready"
    at.world.assert_whole()


def test_agent_of_an_abandoned_turn_is_found(world: World, at: AtWork) -> None:
    """A plain `git push` moves a thread without its lock."""
    other = world.start(workflow=world.snapshot(at.thread).record.workflow)
    ref = f"refs/threads/{at.thread}"
    here, there = world.tip(at.thread), world.tip(other)
    assert world.store.refs.advance(ref, seen=here, to=there)

    assert stop_agents(world.store, at.thread, reason="x")

    assert at.living() == []
    assert at.finish()[0] == 4


def test_agent_s_group_is_found_while_it_lives(world: World, at: AtWork) -> None:
    running = find_running(world.store, at.thread)

    assert running is not None
    assert os.getpgid(pids(world)[0]) == running.group
    timed_pause(at)
    assert find_running(world.store, at.thread) is None
    at.finish()


def test_many_steps_that_come_meanwhile_do_not_save_a_thread(world: World, at: AtWork) -> None:
    rest = [world.process("thread", "step", at.thread) for _ in range(4)]

    world.kill(at.thread)

    for each in rest:
        _out, err = each.communicate(timeout=60)
        # It was busy, and then it had ended.
        assert each.returncode in {1, 4}, err
    at.finish()
    assert at.snapshot().record.status == "killed"
    assert at.living() == []


def test_kill_that_is_killed_leaves_nothing_stuck(world: World) -> None:
    at = begin(world, STUBBORN)
    killer = world.process("thread", "kill", at.thread)
    stop_lock = Path(world.store.local_path("locks", at.thread) + ".stop")
    wait_until(lambda: stop_lock.exists() and stop_lock.read_bytes(), "nothing is being stopped")
    killer.kill()
    # Not reaped yet: a zombie holds nothing.
    wait_until_gone(killer.pid)

    world.kill(at.thread)

    assert killer.communicate()[0] == b""
    assert at.living() == []
    assert at.snapshot().record.status == "killed"
    at.finish()
    at.world.assert_whole()


def test_pause_that_is_killed_leaves_nothing_stuck(world: World) -> None:
    at = begin(world, STUBBORN)
    pauser = world.process("thread", "pause", at.thread, "--now")
    wait_until(lambda: at.snapshot().record.status == "paused", "it is not paused")
    pauser.kill()
    pauser.communicate()

    timed_pause(at)

    assert at.living() == []
    at.finish()
    world.resume(at.thread)
    assert at.snapshot().record.status == "ready"
    at.world.assert_whole()


def test_engine_that_is_stopped_is_named_at_once(world: World, at: AtWork) -> None:
    # It does not learn of its agent's end.
    os.kill(at.engine.pid, signal.SIGSTOP)
    before = time.monotonic()

    with pytest.raises(ThreadBusy) as caught:
        stop_agents(world.store, at.thread, reason="x")
    took_s = time.monotonic() - before
    os.kill(at.engine.pid, signal.SIGCONT)

    assert took_s < DEFAULT_GRACE_S
    assert caught.value.facts["holder"]["pid"] == at.engine.pid
    assert f"`kill -CONT {at.engine.pid}` lets it go on" in str(caught.value.hint)
    assert at.finish()[0] == 130


# White space is no reason.
@pytest.mark.parametrize(
    ("reason", "told"), [("no, now", "no, now"), (" ", "the thread was paused")]
)
def test_pause_leaves_the_agent_at_work_until_it_is_to_be_stopped_now(
    reason: str, told: str, world: World, at: AtWork
) -> None:
    world.pause(at.thread)
    assert at.living() == pids(world) != []

    timed_pause(at, reason)

    assert at.living() == []
    at.finish()
    assert [at.snapshot().record.event, at.snapshot().record.status] == ["attempt", "paused"]
    assert at.attempt()["error"] == stopped(told)
