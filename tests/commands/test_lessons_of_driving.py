"""Failures of driving in an engine of the same design, which cannot happen here.

DECISIONS.md, "What went wrong elsewhere", lists all of it, and where each is held; here is
what no test of a single part shows.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from commands.at_work import (
    BEGUN,
    LONGEST_S,
    RESULT,
    SAY_PID,
    newest_attempt,
    pids,
    wait_for,
    wait_until_gone,
)
from commands.world import DEMO, World

from uwf_git.commands.inspect.show import view_attempt
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.local_files import find_driver

UNTIL_GO = "while [ ! -e go ]; do sleep 0.02; done\n"


pytestmark = pytest.mark.usefixtures("nobody_is_left")


def finished(drive: "subprocess.Popen[bytes]") -> tuple[int, Any]:
    """Wait for a drive's end; return its status and its document."""
    out, _err = drive.communicate(timeout=LONGEST_S)
    return drive.returncode, json.loads(out or b"null")


def at_rest(world: World, thread: str) -> dict[str, Any]:
    """Wait until no process drives a thread; return its snapshot."""
    status, [row] = finished(world.process("thread", "wait", thread, "--timeout", str(LONGEST_S)))
    assert status in {0, 3}
    return dict(row)


def begun(world: World, script: str, *, prompt: str = "Do it.") -> ThreadId:
    """Begin a thread whose agent does *script*."""
    return world.start(world.program(script), workflow=world.put().workflow, prompt=prompt)


def test_thread_driven_in_the_foreground_is_at_work_and_driven_once(world: World) -> None:
    """19: only background runs left a marker; a thread between two steps looked idle."""
    thread = begun(world, f"{SAY_PID}{BEGUN}{UNTIL_GO}{RESULT}")
    drive = world.process("thread", "run", thread)
    wait_for(world.place / "begun", drive)

    refused = [
        finished(world.process("thread", *words))[0]
        for words in (("run", thread), ("run", thread, "--background"), ("step", thread))
    ]
    _status, [row] = finished(world.process("ps"))
    (world.place / "go").touch()

    assert refused == [4, 4, 4]
    assert (row["thread"], row["status"], row["pid"]) == (thread, "running", drive.pid)
    assert finished(drive)[1]["steps"] == 2
    assert len((world.place / "pids").read_text().split()) == 2


def test_of_many_drives_that_begin_at_once_one_drives(world: World) -> None:
    """21: check, then create: two of them passed, and each role played twice."""
    thread = begun(world, f"{SAY_PID}{UNTIL_GO}{RESULT}")
    drives = [world.process("thread", "run", thread) for _ in range(5)]
    deadline = time.monotonic() + LONGEST_S
    while sum(drive.poll() is None for drive in drives) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (world.place / "go").touch()

    assert sorted(finished(drive)[0] for drive in drives) == [0, 4, 4, 4, 4]
    assert len((world.place / "pids").read_text().split()) == 2


def test_driver_that_was_killed_leaves_a_thread_that_the_next_one_drives(world: World) -> None:
    """20, 22: a thread ran for ever after its result was no longer wanted."""
    thread = begun(world, f"{SAY_PID}{BEGUN}{UNTIL_GO}{RESULT}")
    _status, driver = finished(world.process("thread", "run", thread, "--background"))
    wait_for(world.place / "begun")
    os.kill(driver["pid"], 9)
    while find_driver(world.store, thread) is not None:
        time.sleep(0.01)
    # It is seen to be at work, and without an engine.
    _status, [row] = finished(world.process("ps"))
    assert (row["thread"], row["status"], row["pid"]) == (thread, "running", None)

    drive = world.process("thread", "run", thread)
    (world.place / "go").touch()

    status, driven = finished(drive)
    assert (status, driven["status"], driven["steps"]) == (0, "completed", 2)
    assert len((world.place / "pids").read_text().split()) == 2


def test_each_try_has_the_whole_of_its_time(world: World) -> None:
    """25: five minutes by the wall killed healthy agents, as one of three limits on one call."""
    # The pause between two tries counts for neither of them.
    script = 'test "$UWF_ATTEMPT" = 2 || { sleep 0.6; exit 7; }\nsleep 0.6\n'
    program = world.program(script + RESULT)
    world.put(
        DEMO + f"defaultAgent: {{command: {program}, timeout: 1, retries: 1, backoff: 0.5}}\n"
    )
    thread = world.start("checker=nobody")

    assert finished(world.process("thread", "run", thread, "--until", "writer"))[0] == 0

    assert world.snapshot(thread).get_present().execution_ms >= 1200


def test_warnings_do_not_touch_the_documents(world: World) -> None:
    """29: warnings on standard error broke readers of the output."""
    thread = begun(world, f"echo 'ExperimentalWarning: SQLite' >&2; {RESULT}")

    drive = world.process("thread", "run", thread, env={"PYTHONWARNINGS": "always"})

    assert finished(drive)[1]["status"] == "completed"


def test_program_that_has_an_adapter_is_not_taken_for_an_agent_without_a_word(world: World) -> None:
    """30: `--agent hermes` ran the program, where its adapter was meant."""
    world.program("echo 'I know no such option' >&2; exit 2", name="hermes")
    thread = world.start("hermes --fast", workflow=world.put().workflow)
    path = f"{world.place}{os.pathsep}{os.environ['PATH']}"

    drive = world.process("thread", "run", thread, env={"PATH": path})

    _out, err = drive.communicate(timeout=LONGEST_S)
    assert drive.returncode == 3
    assert b"hermes has an adapter, which plays roles: `--agent 'uwf-hermes --fast'`" in err


def test_driver_in_the_background_stands_where_its_starter_stood(world: World) -> None:
    """28, 31: a child started in the wrong directory, and found neither program nor store."""
    (world.place / "bin").mkdir()
    world.program(f'pwd -P >>here; echo "$UWF_REPO" >>here; {RESULT}', name="bin/mine")
    thread = world.start("mine", workflow=world.put().workflow)
    store = os.path.relpath(world.store.path, world.place)
    path = f"{world.place}/bin{os.pathsep}{os.environ['PATH']}"

    drive = world.process(
        "thread", "run", thread, "--background", env={"PATH": path, "UWF_REPO": store}
    )

    assert finished(drive)[0] == 0
    assert at_rest(world, thread)["status"] == "completed"
    here = (world.place / "here").read_text().splitlines()
    assert here == [str(world.place.resolve()), world.store.path] * 2


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_driver_in_the_background_leaves_its_reasons(stream: tuple[str, ...], world: World) -> None:
    """32: its streams were ignored, and so was why it ended."""
    thread = begun(world, "echo 'no ink' >&2; exit 7")

    _status, driver = finished(world.process("thread", "run", thread, "--background", *stream))

    assert at_rest(world, thread)["status"] == "failed"
    out, _err = world.process("thread", "logs", thread).communicate(timeout=LONGEST_S)
    assert b"\nerror: writer failed (agent): exit status 7: no ink\n" in b"\n" + out
    assert Path(driver["log"]).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", [(), ("--background",)])
def test_no_prompt_stands_in_arguments_or_the_environment(
    how: tuple[str, ...], world: World
) -> None:
    """33: a long text is refused there by the system, and a secret one seen by everybody."""
    look = "tr '\\0' '\\n' </proc/$PPID/cmdline >>seen; tr '\\0' '\\n' </proc/self/environ >>seen"
    engine = "tr '\\0' '\\n' </proc/$(ps -o ppid= -p $PPID | tr -d ' ')/cmdline >>seen"
    thread = begun(world, f"{look}\n{engine}\n{RESULT}", prompt="the word is swordfish " * 10_000)

    assert finished(world.process("thread", "run", thread, *how))[0] == 0

    assert at_rest(world, thread)["status"] == "completed"
    seen = (world.place / "seen").read_text()
    assert thread in seen
    assert "swordfish" not in seen


def test_agent_that_is_paused_now_keeps_what_it_printed_and_is_gone(world: World) -> None:
    """22: `stop` reported success, and the agent ran on."""
    thread = begun(world, f"trap '' TERM; echo partly; {SAY_PID}{BEGUN}sleep 60 & wait; sleep 60")
    other = world.process("thread", "run", thread)
    wait_for(world.place / "begun", other)
    paused = world.pause(thread, reason="lunch", now=True)
    out, err = other.communicate(timeout=LONGEST_S)

    assert (other.returncode, paused.status) == (0, "paused"), err
    assert b'"stopped":"paused"' in out
    assert world.snapshot(thread).record.status == "paused"
    attempt = newest_attempt(world, thread)
    assert attempt["error"] == {"kind": "interrupted", "message": "it was stopped: lunch"}
    assert attempt["content"] == "partly\n"
    (agent,) = pids(world)
    wait_until_gone(agent)


def test_lost_try_is_an_attempt_that_says_so(world: World) -> None:
    """22, 26: a try that was lost with its machine is in the history, and is repeated."""
    hangs = 'test "$UWF_ATTEMPT" = 2 || { echo half; echo begun >begun; exec sleep 1000; }\n'
    thread = begun(world, f"{SAY_PID}{hangs}{RESULT}")
    _status, driver = finished(world.process("thread", "run", thread, "--background"))
    wait_for(world.place / "begun")
    (agent,) = (world.place / "pids").read_text().split()
    os.kill(driver["pid"], 9)
    os.killpg(os.getpgid(int(agent)), 9)

    assert finished(world.process("thread", "run", thread, "--until", "writer"))[0] == 0
    head = world.tip(thread)
    [lost] = [each for each in walk_history(world.store, head) if each.record.event == "attempt"]
    attempt = view_attempt(lost, lost.get_present().last_attempt) or {}
    assert (attempt["error"]["kind"], attempt["content"]) == ("lost", "half\n")
