"""An agent whose engine was killed: the next engine enforces limits and takes its result."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

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
    end_all,
    wait_for,
)
from commands.world import DEMO, World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.step.step_thread import TurnFailed

STUBBORN = "trap 'echo x >asked' TERM\n"
SAID = "echo 'half of it'; echo 'so far' >&2\n"
UNTIL_GO = "while [ ! -e go ]; do sleep 0.02; done\n"


@pytest.fixture(autouse=True)
def _nobody_is_left(world: World) -> Iterator[None]:
    yield
    end_all(world)


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


def failed(at: AtWork) -> str:
    """Take the step, which fails; return the kind of its failure."""
    with pytest.raises(TurnFailed) as caught:
        at.world.step(at.thread, agent_player(None))
    assert at.living() == []
    return str(caught.value.facts["kind"])


def test_time_limit_of_an_agent_holds_without_its_engine_too(world: World) -> None:
    at = left_alone(world, f"{SAID}{BEGUN}{HANG}", timeout_s=1)

    assert failed(at) == "timed-out"
    assert (at.attempt()["content"], at.attempt()["stderr"]) == ("half of it\n", "so far\n")
    at.check_whole()


def test_time_counts_from_the_beginning_of_the_agent(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{HANG}", timeout_s=1000)
    (pid,) = Path(world.store.local_path("run", at.thread)).glob("*/pid")
    began_s = time.time() - 2000
    os.utime(pid, (began_s, began_s))

    assert failed(at) == "timed-out"


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


def test_endless_output_is_stopped_without_its_engine_too(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}yes >&2")
    (world.place / "go").touch()

    assert failed(at) == "too-much-output"


def test_daemon_that_it_left_behind_is_not_waited_for(world: World) -> None:
    daemon = f"sh -c '{SAY_PID.strip()}; exec sleep 1000' >daemon 2>&1 &\n"
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{daemon}sleep 0.1; {RESULT}")
    log: list[bytes] = []
    (world.place / "go").touch()

    assert world.step(at.thread, agent_player(log.append)).depth == 1

    assert at.living() != []


def test_wait_is_reported_and_ticks(world: World) -> None:
    at = left_alone(world, f"{BEGUN}{UNTIL_GO}{RESULT}")
    heard: list[bytes] = []

    def tick() -> None:
        (world.place / "go").touch()

    assert world.step(at.thread, agent_player(heard.append, on_tick=tick)).depth == 1
    assert heard == [b"the agent of an interrupted step is still at work; waiting for it\n"]
