"""An agent whose engine was killed: the next engine enforces limits and takes its result."""

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest
from commands.at_work import (
    BEGUN,
    HANG,
    LONGEST_S,
    RESULT,
    SAY_PID,
    AtWork,
    at_work,
    begin,
    pids,
    wait_for,
    wait_until,
)
from commands.turns import branches
from commands.world import DEMO, World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import find_running
from uwf_git.commands.plan import StopWatch
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import ThreadId
from uwf_git.plan.settings import DEFAULTS
from uwf_git.store.threads.local_files import get_run_dir

STUBBORN = "trap 'echo x >asked' TERM\n"
SAID = "echo 'half of it'; echo 'so far' >&2\n"
UNTIL_GO = "while [ ! -e go ]; do sleep 0.02; done\n"


pytestmark = pytest.mark.usefixtures("nobody_is_left")


def left_alone(world: World, script: str, *, timeout_s: float | None = None) -> AtWork:
    """Start an agent that runs *script*, and kill its engine."""
    if timeout_s is None:
        at = begin(world, script)
    else:
        command = world.program(SAY_PID + script)
        world.put(DEMO + f"defaultAgent: {{command: {command}, timeout: {timeout_s}}}\n")
        at = at_work(world, world.start("checker=nobody"))
    at.lose_engine()
    return at


def let_begin_earlier(world: World, thread: ThreadId) -> None:
    """Have the agent of *thread* begun 2000 s ago."""
    set_clock(world, thread)
    (clock,) = Path(world.store.local_path("run", thread)).glob("*.clock")
    boot, begun_s = clock.read_text().split()
    clock.write_text(f"{boot} {float(begun_s) - 2000}")


def set_clock(world: World, thread: ThreadId) -> None:
    """Have the wall clock been set 2000 s forward since the agent of *thread* began."""
    (pid,) = Path(world.store.local_path("run", thread)).glob("*/pid")
    os.utime(pid, (time.time() - 2000,) * 2)


def failed(at: AtWork) -> str:
    """Take the step, which fails; return the kind of its failure."""
    failed = at.world.fail(at.thread, agent_player(None))
    assert at.living() == []
    return str(failed.facts["kind"])


def test_time_limit_of_an_agent_holds_without_its_engine_too(world: World) -> None:
    at = left_alone(world, f"{SAID}{BEGUN}{HANG}", timeout_s=1)

    assert failed(at) == "timed-out"
    assert (at.attempt()["content"], at.attempt()["stderr"]) == ("half of it\n", "so far\n")
    at.world.assert_whole()


def test_time_limit_of_a_thread_holds_for_its_branch_without_an_engine_too(world: World) -> None:
    flow = """\
name: one
root: {type: parallel, nodes: [{type: agent, agentId: worker}]}
config: {maxExecutionTime: 60000}
"""
    thread = world.begun(flow, world.program(f"{SAY_PID}{BEGUN}{HANG}"))
    world.step(thread)
    at_work(world, thread).lose_engine()
    (branch,) = branches(world, thread)
    let_begin_earlier(world, branch)

    with pytest.raises(TurnFailed, match="execution time that the thread had left"):
        world.step(branch, agent_player(None))


def test_check_that_its_engine_left_running_is_ended_and_runs_again(world: World) -> None:
    world.program(f"[ -e begun ] && exit\n{SAY_PID}{BEGUN}{HANG}", name="check")
    checked = DEMO.replace("    systemPrompt: Write.\n", "    checks: [./check]\n")
    at = begin(world, RESULT, workflow=world.put(checked).workflow)
    at.lose_engine()

    assert world.step(at.thread, agent_player(None)).depth == 1
    assert at.living() == []


def test_another_agent_may_be_named_meanwhile_for_another_role(world: World) -> None:
    world.program(f"{SAY_PID}{BEGUN}{UNTIL_GO}{RESULT}", name="relative")
    at = at_work(world, world.begun(DEMO, "./relative"))
    at.lose_engine()
    (world.place / "go").touch()

    named = world.step(at.thread, agent_player(None), agents=("checker=./relative",))
    assert (named.status, named.role) == ("ready", "writer")


@pytest.mark.parametrize("boot", [True, False])
def test_time_counts_from_the_beginning_of_the_agent(*, world: World, boot: bool) -> None:
    at = left_alone(world, f"{BEGUN}{HANG}", timeout_s=1000)
    let_begin_earlier(world, at.thread)
    if not boot:
        # As where the system does not tell when it booted, or by an older uwf.
        (clock,) = Path(world.store.local_path("run", at.thread)).glob("*.clock")
        clock.write_text(" 1.5")

    assert failed(at) == "timed-out"


def test_a_clock_that_is_set_uses_up_no_time(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{RESULT}", timeout_s=1000)
    set_clock(world, at.thread)
    Timer(0.5, (world.place / "go").touch).start()

    assert at.world.step(at.thread, agent_player(None)).depth == 1
    assert at.snapshot().get_present().execution_ms < 1_000_000


def test_time_of_its_step_is_told_from_the_beginning_of_the_agent(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{RESULT}")
    let_begin_earlier(world, at.thread)
    (world.place / "go").touch()

    engine = world.process("thread", "run", at.thread, "--until", "writer")
    err = engine.communicate(timeout=LONGEST_S)[1].decode()

    assert re.search(r"step 1 writer: .* \(20\d\d\.\d s\)", err), err


@pytest.mark.parametrize("script", [SAID, STUBBORN + SAID])
def test_interrupt_while_it_is_waited_for_ends_it_and_records_the_try(
    script: str, world: World
) -> None:
    at = left_alone(world, f"{script}{BEGUN}{HANG}")
    engine = world.process("thread", "run", at.thread, "--stream")
    assert engine.stderr is not None
    assert b"still at work; waiting" in engine.stderr.readline()

    engine.send_signal(signal.SIGINT)
    if script != SAID:
        # The agent ends slowly; a second interrupt kills it.
        wait_for(world.place / "asked", engine)
        engine.send_signal(signal.SIGINT)

    engine.communicate(timeout=LONGEST_S)
    assert engine.returncode == 130
    assert at.living() == []
    assert at.attempt()["error"]["kind"] == "interrupted"
    assert at.attempt()["content"] == "half of it\n"
    assert at.snapshot().record.status == "ready"


@pytest.mark.parametrize("prints", ["yes", "truncate -s 1073741825 /dev/stderr; sleep 1000"])
def test_endless_output_is_stopped_without_its_engine_too(world: World, prints: str) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{prints}")
    (world.place / "go").touch()

    assert failed(at) == "too-much-output"


def test_long_log_costs_no_answer_without_its_engine_too(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}head -c 17000000 /dev/zero >&2; sleep 0.2; {RESULT}")
    (world.place / "go").touch()

    assert world.step(at.thread, agent_player(None)).depth == 1


def test_daemon_that_it_left_behind_is_not_waited_for(world: World) -> None:
    daemon = f"sh -c '{SAY_PID.strip()}; exec sleep 1000' >daemon 2>&1 &\n"
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{daemon}sleep 0.1; {RESULT}")
    log: list[bytes] = []
    (world.place / "go").touch()

    assert world.step(at.thread, agent_player(log.append)).depth == 1

    assert at.living() != []


def killed_with_a_daemon(world: World, thread: ThreadId) -> AtWork:
    """Kill an engine and its agent, which leaves a daemon in a session of its own."""
    at = at_work(world, thread)
    at.lose_engine()
    end_group(at)
    wait_until(lambda: find_running(world.store, thread) is None, "it runs on")
    return at


def end_group(at: AtWork) -> None:
    os.killpg(os.getpgid(pids(at.world)[0]), signal.SIGKILL)


DAEMON = f"""\
setsid sh -c 'echo $$ >>pids; echo x >daemon; exec sleep 1000' >/dev/null 2>&1 &
while [ ! -s daemon ]; do sleep 0.01; done
echo half
{BEGUN}{HANG}"""


def with_daemon(world: World) -> ThreadId:
    return world.start(world.program(SAY_PID + DAEMON), workflow=world.put().workflow)


def test_daemon_of_an_agent_that_was_killed_is_not_waited_for(world: World) -> None:
    at = killed_with_a_daemon(world, with_daemon(world))

    failed = world.fail(at.thread, agent_player(None))

    assert (failed.facts["kind"], at.attempt()["content"]) == ("lost", "half\n")
    assert at.living() == pids(world)[1:]
    assert world.step(at.thread).depth == 1
    at.world.assert_whole()


def test_agent_that_is_killed_while_it_is_waited_for_leaves_a_daemon(world: World) -> None:
    at = at_work(world, with_daemon(world))
    at.lose_engine()

    failed = world.fail(at.thread, agent_player(None, on_tick=lambda: end_group_once(at)))

    assert (failed.facts["kind"], at.attempt()["content"]) == ("lost", "half\n")


def end_group_once(at: AtWork) -> None:
    with suppress(ProcessLookupError):
        end_group(at)


def test_daemon_of_an_agent_that_was_killed_does_not_hold_up_a_poke(world: World) -> None:
    thread = with_daemon(world)
    world.step(thread)
    at = killed_with_a_daemon(world, thread)

    assert (world.poke(thread).status, world.snapshot(thread).record.depth) == ("ready", 0)
    assert find_running(world.store, thread) is None
    assert at.living() == pids(world)[1:]


REPORTING = """
name: reporting
roles:
  writer: {outputSchema: {type: object, required: [text]}, outputFile: report.json}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
LEAVES = """echo '{"text": "left"}' >report.json\n"""


def test_program_that_had_told_of_its_stop_is_ended_by_the_next_driver(world: World) -> None:
    told = """echo '{"type": "stop-notice"}' >>"$UWF_TRACE"\n"""
    at = begin(world, f"{told}{LEAVES}{BEGUN}{HANG}", workflow=world.put(REPORTING).workflow)
    at.lose_engine()

    with StopWatch(DEFAULTS._replace(stop_grace_ms=100), port=0) as watch:
        world.step(at.thread, watch.attend(agent_player(None), lambda: "executing", None))

    assert at.snapshot().get_head_node().payload["meta"] == {"text": "left"}
    assert at.living() == []
    at.world.assert_whole()


def test_program_that_was_being_ended_is_ended_by_any_engine(world: World) -> None:
    at = begin(world, f"{LEAVES}{BEGUN}{HANG}", workflow=world.put(REPORTING).workflow)
    at.lose_engine()
    run_dir = get_run_dir(world.store, at.thread, at.snapshot().commit.oid)
    run_dir.write("report", '{"text": "kept"}')

    world.step(at.thread, agent_player(None))

    assert at.snapshot().get_head_node().payload["meta"] == {"text": "kept"}
    assert at.living() == []
