"""A check that a dead engine left is ended and runs again; one that is at work can be stopped."""

import os
from collections.abc import Iterator

import pytest
from commands.at_work import AtWork, at_work, end_all, is_alive, pids, wait_until_gone
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import find_running
from uwf_git.commands.inspect.logs import LogRequest, read_logs
from uwf_git.store.threads.local_files import get_run_dir

CHECKED = """
name: checked
roles:
  writer: {outputSchema: {type: object, required: [text]}, checks: [./check]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
AGENT = """echo run >>runs; printf '{"meta": {"text": "words"}, "content": "a text"}'"""
# The first one hangs, and every other one succeeds.
CHECK = """\
echo check >>checks
test -e begun && exit 0
echo thinking about it
echo $$ >>pids
echo begun >begun
while :; do sleep 0.05; done
"""


@pytest.fixture
def at(world: World) -> Iterator[AtWork]:
    """Return a thread whose check is under way in another process."""
    workflow = world.put(CHECKED).workflow
    world.program(CHECK, name="check")
    thread = world.start(world.program(AGENT), workflow=workflow)
    yield at_work(world, thread)
    end_all(world)


def lines(world: World, name: str) -> list[str]:
    return (world.place / name).read_text().splitlines()


def test_engine_that_is_killed_has_the_check_run_again_and_the_agent_once(at: AtWork) -> None:
    at.lose_engine()
    [orphan] = pids(at.world)
    assert is_alive(orphan)

    assert at.world.step(at.thread, agent_player(None)).said == "a text"

    assert not is_alive(orphan)
    assert (lines(at.world, "runs"), lines(at.world, "checks")) == (["run"], ["check"] * 2)
    at.world.assert_whole()
    assert not os.path.exists(get_run_dir(at.world.store, at.thread, at.snapshot().commit.oid).path)


def step_again(at: AtWork) -> None:
    """Take the step again: the checks run again, and the agent does not."""
    assert at.world.step(at.thread, agent_player(None)).said == "a text"
    assert (lines(at.world, "runs"), lines(at.world, "checks")) == (["run"], ["check"] * 2)
    assert at.snapshot().get_present().attempts == 0
    at.world.assert_whole()


def test_check_at_work_is_seen_and_stopped(at: AtWork) -> None:
    running = find_running(at.world.store, at.thread)
    assert running is not None
    assert running.group is not None
    shown = [
        (piece.source, piece.lines) for piece in read_logs(at.world.store, LogRequest(at.thread))
    ]
    assert ("writer, check check", ["thinking about it"]) in shown

    paused = at.world.pause(at.thread, reason="wrong", now=True)

    assert paused.status == "paused"
    status, err = at.finish()
    assert (status, "its check was stopped: wrong" in err) == (130, True)
    wait_until_gone(pids(at.world)[0])
    assert at.snapshot().record.event == "pause"
    at.world.resume(at.thread, reason="")
    step_again(at)


def test_thread_that_is_killed_keeps_the_answer_unchecked(at: AtWork) -> None:
    at.world.kill(at.thread, reason="enough")

    at.finish()
    assert at.snapshot().record.status == "killed"
    assert at.attempt()["error"]["kind"] == "interrupted"
    assert '"text": "words"' in at.attempt()["content"]
    at.world.assert_whole()
