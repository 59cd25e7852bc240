"""Failures of processes in an engine of the same design, which cannot happen here.

DECISIONS.md, "What went wrong elsewhere", lists all of it, and where each is held; here is
what no test of a single part shows.
"""

import os
import subprocess
import time
from pathlib import Path

import pytest
from commands.at_work import BEGUN, HANG, RESULT, begin, is_alive, newest_attempt, pids
from commands.world import DEMO, World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import find_holder

LONGEST_S = 60


pytestmark = pytest.mark.usefixtures("nobody_is_left")


def failed_step(world: World, thread: ThreadId) -> TurnFailed:
    """Take a step with the thread's own agent, which fails."""
    return world.fail(thread, agent_player(lambda _log: None))


def wait_for_attempt(world: World, thread: ThreadId) -> None:
    """Wait until a failed try is recorded."""
    deadline = time.monotonic() + LONGEST_S
    while world.snapshot(thread).record.event != "attempt":
        assert time.monotonic() < deadline
        time.sleep(0.01)
        world.reopen()


def test_thread_of_a_killed_engine_is_not_running_whoever_has_its_number_now(world: World) -> None:
    """20: pids are used again; a thread ran for ever, and `stop` could have hit a stranger."""
    at = begin(world, f"{BEGUN}{HANG}")
    at.lose_engine()
    (agent,) = pids(world)
    os.killpg(os.getpgid(agent), 9)
    at.engine.wait()
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    # The number of the agent, and that of the engine, are the stranger's by now.
    (run,) = Path(world.store.local_path("run", at.thread)).glob("*/pid")
    run.write_text(f"{stranger.pid}\n")
    lock = Path(world.store.local_path("locks", at.thread))
    lock.write_text(lock.read_text().replace(str(at.engine.pid), str(stranger.pid)))

    assert find_holder(world.store, at.thread) is None
    world.pause(at.thread, now=True)
    world.kill(at.thread)

    assert is_alive(stranger.pid)
    assert at.snapshot().record.status == "killed"
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("how", ["pause", "kill"])
def test_agent_that_was_stopped_edits_no_file_any_more(how: str, world: World) -> None:
    """22: `stop` reported success while the engine blocked, and the agent edited on."""
    script = f"{BEGUN}(while :; do echo x >>edited; done) & while :; do echo y >>edited; done"
    at = begin(world, script)
    if how == "pause":
        world.pause(at.thread, now=True)
    else:
        world.kill(at.thread)

    size = (world.place / "edited").stat().st_size
    assert at.finish()[0] == 130
    assert (world.place / "edited").stat().st_size == size


def test_child_that_an_agent_left_behind_keeps_no_step_waiting(world: World) -> None:
    """23: an agent's process never exited, because a child of its own stayed alive."""
    child = "sh -c 'echo $$ >>pids; echo x >child; exec sleep 1000' &\n"
    child += "while [ ! -s child ]; do sleep 0.01; done\n"
    thread = world.start(world.program(child + RESULT), workflow=world.put().workflow)
    began = time.monotonic()

    assert world.step(thread, agent_player(lambda _log: None)).status == "ready"
    assert time.monotonic() - began < LONGEST_S


def test_agent_that_waits_for_an_answer_gets_end_of_file(world: World) -> None:
    """24: an agent hung for ever on a permission that it had asked its client for."""
    asks = 'echo "May I?" >&2; read -r answer || echo "nobody answers" >&2\n'
    thread = world.start(world.program(asks + RESULT), workflow=world.put().workflow)
    log: list[bytes] = []

    assert world.step(thread, agent_player(log.append)).status == "ready"

    assert b"".join(log) == b"May I?\nnobody answers\n"


def test_agent_that_hangs_in_silence_is_ended_by_its_own_limit(world: World) -> None:
    """24, 26: a stream hung; and where a limit ended it, all work was thrown away."""
    program = world.program(f"echo 'half of it'; echo 'so far' >&2; {BEGUN}exec sleep 1000")
    world.put(DEMO + f"defaultAgent: {{command: {program}, timeout: 0.5, retries: 1}}\n")
    thread = world.start("checker=nobody")

    failed_step(world, thread)

    attempt = newest_attempt(world, thread)
    assert attempt["error"]["kind"] == "timed-out"
    assert (attempt["content"], attempt["stderr"]) == ("half of it\n", "so far\n")
    # Nothing is thrown away: the thread goes on, and the next prompt knows why.
    assert world.snapshot(thread).record.status == "ready"
    assert "it exceeded its time limit" in render_prompt(get_context(world.store, thread))


def test_work_that_was_interrupted_is_a_checkpoint(world: World) -> None:
    """26: the output and the cost of a failed try stay, and the next try gets them."""
    at = begin(world, f"echo 'half of it'; {BEGUN}{HANG}")

    world.pause(at.thread, reason="not like this", now=True)

    wait_for_attempt(world, at.thread)
    at.finish()
    world.resume(at.thread)
    context = get_context(world.store, at.thread)
    assert (context["attempt"], context["lastError"]) == (
        2,
        {"kind": "interrupted", "message": "it was stopped: not like this"},
    )
    assert at.attempt()["content"] == "half of it\n"


def test_megabytes_of_output_are_recorded(world: World) -> None:
    """27: output over a buffer of 1 MB crashed the step."""
    text = "An old silent pond. " * 10
    prints = f"""\
echo '---'
echo 'text: x'
echo '---'
yes '{text}' | head -n 20000
yes thinking | head -c 3000000 >&2
"""
    thread = world.start(world.program(prints), workflow=world.put().workflow)
    sizes: list[int] = []

    world.step(thread, agent_player(lambda log: sizes.append(len(log))))

    node = world.snapshot(thread).get_head_node()
    content = world.snapshot(thread).get_node(node.payload["content"]["$ref"]).payload
    assert content.count("An old silent pond.") == 200_000
    assert sum(sizes) == 3_000_000


def test_agent_stands_where_its_thread_works_and_is_reported_where(
    world: World, tmp_path: Path
) -> None:
    """31: a child started in the wrong directory, and agents spent turns on finding theirs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    thread = world.start(world.program(f"pwd -P >here; {RESULT}"), workflow=world.put().workflow)

    world.step(thread, agent_player(lambda _log: None), workdir=str(elsewhere))

    # The work directory is the thread's, wherever the next step is started.
    world.caller = world.caller._replace(cwd="/")
    assert (elsewhere / "here").read_text() == f"{elsewhere.resolve()}\n"
    assert get_context(world.store, thread)["workdir"] == str(elsewhere)
    assert f"You work in the directory {elsewhere}." in render_prompt(
        get_context(world.store, thread)
    )


def test_drive_that_waits_before_it_tries_again_hears_that_it_is_over(world: World) -> None:
    """22: and no process waits until a backoff is over."""
    program = world.program(f"{BEGUN}exit 7")
    world.put(DEMO + f"defaultAgent: {{command: {program}, retries: 5, backoff: 600}}\n")
    threads = [world.start("checker=nobody"), world.start("checker=nobody")]
    drives = [world.process("thread", "run", thread) for thread in threads]
    for thread in threads:
        wait_for_attempt(world, thread)
        assert world.snapshot(thread).record.status == "ready"
    began = time.monotonic()

    world.kill(threads[0])
    world.pause(threads[1], now=True)

    assert time.monotonic() - began < 10
    for drive in drives:
        drive.communicate(timeout=LONGEST_S)
    assert [world.snapshot(each).record.status for each in threads] == ["killed", "paused"]


def test_step_goes_on_while_other_processes_read_it(world: World) -> None:
    """21: a reader must not be taken for the engine at work: readers take no agent lock."""
    at = begin(world, f"{BEGUN}while [ ! -e go ]; do sleep 0.02; done; {RESULT}")
    looks = [world.process("ps") for _ in range(2)]
    looks.append(world.process("thread", "show", at.thread))
    for look in looks:
        _out, err = look.communicate(timeout=LONGEST_S)
        assert look.returncode == 0, err
    (world.place / "go").touch()

    assert at.finish()[0] == 0
    assert find_holder(world.store, at.thread) is None
    assert at.living() == []


def test_agent_that_fails_without_a_word_is_reported_all_the_same(world: World) -> None:
    """27: stderr could be null in the report of the failure."""
    thread = world.start(world.program("exit 7"), workflow=world.put().workflow)

    assert failed_step(world, thread).message.endswith("exit status 7")
    payload = newest_attempt(world, thread)
    assert payload["exitCode"] == 7
    assert "stderr" not in payload


def test_missing_command_is_named_with_how_to_check(world: World) -> None:
    """28: a bare ENOENT; and the PATH of a service is not that of a shell."""
    failed = failed_step(world, world.start("no-such-agent --fast", workflow=world.put().workflow))

    assert "no-such-agent" in failed.message
    assert "no-such-agent" in str(failed.hint)
    assert failed.exit_status == 3


def test_second_step_of_a_thread_at_work_gets_the_holder(world: World) -> None:
    """21: check, then create: two engines could both pass."""
    at = begin(world, f"{BEGUN}while [ ! -e go ]; do sleep 0.02; done; {RESULT}")
    second = world.process("thread", "step", at.thread)
    _out, err = second.communicate(timeout=LONGEST_S)
    assert second.returncode == 4
    assert f"pid {at.engine.pid}".encode() in err
    (world.place / "go").touch()
    assert at.finish()[0] == 0
