"""An agent does not wait for its own thread: real processes, since a lock names its holder."""

import subprocess

from commands.at_work import LONGEST_S, RESULT
from commands.world import World

from uwf_git.commands.agent_run.runs import refuse_inside
from uwf_git.store.threads.local_files import lock_drive

OTHER = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def run_agent(world: World, script: str) -> str:
    """Take a step whose agent runs *script*; return what that wrote to standard error."""
    thread = world.start(
        world.program(f"({script}) 2>said\n{RESULT}"), workflow=world.put().workflow
    )
    engine = world.process("thread", "step", thread)
    try:
        _out, err = engine.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        world.process("thread", "kill", thread).communicate()
        raise
    assert engine.returncode == 0, err.decode()
    return (world.place / "said").read_text()


def test_agent_that_waits_for_its_own_thread_is_refused(world: World) -> None:
    said = run_agent(
        world, 'uwf thread wait "$UWF_THREAD_ID"; uwf thread logs --follow "$UWF_THREAD_ID"'
    )

    assert said.count("waits for the agent that runs this command") == 2


def test_others_may_wait(world: World) -> None:
    thread = world.begun()

    # At rest: there is nothing to wait for.
    refuse_inside(world.store, thread, {"UWF_THREAD_ID": thread})
    with lock_drive(world.store, thread, since_ms=0):
        refuse_inside(world.store, thread, {})
        # This process holds the lock itself: its other thread of Python may wait.
        refuse_inside(world.store, thread, {"UWF_THREAD_ID": OTHER})
