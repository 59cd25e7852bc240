"""Run a thread of many branches while other processes step, patch and kill what drives it."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from commands.flow_runs import assert_sound, branches
from commands.world import World

from uwf_git.commands.control.amend import AmendRequest, amend_thread
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.store.threads.history import walk_history

# An agent that writes that it ran, and takes a moment.
_AGENT = """
sleep 0.3
printf '%s\\n' "$UWF_ROLE" >> "$WORKED"
echo done
"""


def source(width: int, passes: int) -> str:
    """Return a flow of *width* loops at once, each of so many passes of an agent."""
    loops = "".join(
        f"    - {{type: loop, maxIterations: {passes}, nodes: [{{type: agent, agentId: w{n}}}]}}\n"
        for n in range(width)
    )
    return f"name: storm\ndescription: Many at once.\nroot:\n  type: parallel\n  nodes:\n{loops}"


def run_storm(world: World, *, width: int, passes: int, kills: int) -> None:
    """Drive such a thread to its end, and check that nothing was lost or doubled."""
    worked = world.place / "worked"
    agent = world.program(_AGENT.replace("$WORKED", str(worked)))
    thread = world.begun(source(width, passes))
    amend_thread(world.store, world.caller, AmendRequest(thread, agents=(agent,)))
    patches = _interfere(world, thread, kills=kills)

    world.reopen()
    snapshot = world.snapshot(thread)
    assert snapshot.record.status == "completed"
    roles = {f"w{n}": passes for n in range(width)}
    assert Counter(worked.read_text().split()) == roles
    assert snapshot.get_present().visits == roles
    children = branches(world, thread)
    assert len(children) == width
    for each in (thread, *children):
        assert_sound(world, each)
    state = snapshot.get_present().state
    assert {key: value for key, value in state.items() if key.startswith("patch")} == patches
    splits = [each for each in _events(world, thread) if each in {"split", "join", "end"}]
    assert splits == ["split", "join", "end"]


def _events(world: World, thread: ThreadId) -> list[str]:
    tip = world.snapshot(thread).commit.oid
    return [str(each.record.event) for each in walk_history(world.store, tip)][::-1]


def _interfere(world: World, thread: ThreadId, *, kills: int) -> dict[str, int]:
    """Drive, step and patch until the thread has ended; kill the first drives."""
    chance = random.Random(7)
    patches: dict[str, int] = {}
    planned = kills
    deadline = time.monotonic() + 300
    while world.store.refs.find(ARCHIVE + thread) is None:
        assert time.monotonic() < deadline, "it does not end"
        with _drive(world, thread) as drive:
            if kills:
                _wait_for_work(world, chance.randint(1, 5))
                key = f"patch{len(patches)}"
                if _run(world, "thread", "patch", thread, f'{{"{key}": {len(patches)}}}') == 0:
                    patches[key] = len(patches)
                world.reopen()
                for each in chance.sample(_known(world, thread), k=1):
                    _run(world, "thread", "step", each)
                drive.kill()
                kills -= 1
                _run(world, "thread", "step", thread, "--jobs", "2")
            drive.wait(timeout=200)
    assert kills < planned, "it ended before a drive was killed"
    return patches


def _wait_for_work(world: World, more: int) -> None:
    """Wait until so many more agents have ended, or some time has passed: all may have ended."""
    worked = world.place / "worked"
    before = worked.stat().st_size if worked.exists() else 0
    for _ in range(200):
        time.sleep(0.01)
        if worked.exists() and worked.stat().st_size >= before + 3 * more:
            return


def _known(world: World, thread: ThreadId) -> list[ThreadId]:
    return branches(world, thread) or [thread]


def _run(world: World, *words: str) -> int:
    process = world.process(*words)
    process.communicate(timeout=120)
    # Busy, a failed step that another one recorded, ended: all of these may be.
    assert process.returncode in {0, 1, 3, 4}, words
    return process.returncode


@contextmanager
def _drive(world: World, thread: ThreadId) -> Iterator["subprocess.Popen[bytes]"]:
    drive = world.process("thread", "run", thread, "--jobs", "4")
    try:
        yield drive
    finally:
        drive.kill()
        drive.communicate()
