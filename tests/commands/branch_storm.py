"""Run a thread of many branches while other processes drive, patch and kill; one listens."""

import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from commands.turns import branches
from commands.world import World

from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.journal import EventsRequest, EventStream
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.store.threads.history import walk_history

# An agent that writes that it ran, and takes a moment.
_AGENT = """
sleep 0.3
echo "$UWF_ROLE" >> worked
echo done
"""


def source(width: int, passes: int) -> str:
    """Return a flow of *width* loops at once, each of so many passes of an agent.

    The last two are branches of a branch.
    """
    loops = [
        f"{{type: loop, maxIterations: {passes}, nodes: [{{type: agent, agentId: w{n}}}]}}"
        for n in range(width)
    ]
    nodes = [*loops[:-2], f"{{type: parallel, nodes: [{', '.join(loops[-2:])}]}}"]
    listed = "".join(f"    - {node}\n" for node in nodes)
    return f"name: storm\ndescription: Many at once.\nroot:\n  type: parallel\n  nodes:\n{listed}"


def run_storm(world: World, size: tuple[int, int], chance: random.Random, *, kills: int) -> None:
    """Drive such a thread to its end, and check that nothing was lost or doubled.

    *size* is its width and passes.
    """
    width, passes = size
    agent = world.program(_AGENT)
    thread = world.begun(source(width, passes))
    world.amend(thread, agent)
    with Listener(world, thread) as listener:
        patches = _interfere(world, thread, listener, (kills, chance))
        heard = listener.hear_all()

    world.reopen()
    snapshot = world.snapshot(thread)
    assert snapshot.record.status == "completed"
    roles = {f"w{n}": passes for n in range(width)}
    assert Counter((world.place / "worked").read_text().splitlines()) == roles
    assert snapshot.get_present().visits == roles
    family = [thread, *_list_below(world, thread)]
    assert len(family) == width + 2
    for each in family:
        world.assert_sound(each)
    state = snapshot.get_present().state
    assert {key: value for key, value in state.items() if key.startswith("patch")} == patches
    changes = [each for each in _events(world, thread) if each in {"split", "join", "end"}]
    assert changes == ["split", "join", "end"]
    _check_heard(world, family, heard)


def _check_heard(world: World, family: list[ThreadId], heard: list[str]) -> None:
    """Check that *heard* are the events of the family, and each commit has its one."""
    stream = EventStream(
        world.store, EventsRequest(family[0]), EventOptions(), list[Exception]().append
    )
    events = list(stream.read())
    assert heard == [event["id"] for event in events]
    assert len(heard) == len(set(heard))
    of_workflow = [event for event in events if event["type"].startswith("workflow:")]
    told = Counter((event["taskId"], event["event"]) for event in of_workflow)
    assert told == Counter((each, event) for each in family for event in _events(world, each))
    kinds = Counter(event["type"] for event in events)
    turns = sum(told[each, event] for each in family for event in ("step", "attempt"))
    assert (kinds["node:enter"], kinds["node:exit"]) == (turns, turns)
    _check_order(events)


def _check_order(events: list[dict[str, Any]]) -> None:
    """Check that branches are told between the split and the join of the thread around them."""
    open_in: dict[str, bool] = {}
    for event in events:
        task, parent = event["taskId"], event.get("parentTaskId")
        assert parent is None or open_in.get(parent), event
        if event["type"] in {"parallel:start", "parallel:complete"}:
            open_in[task] = event["type"] == "parallel:start"


def _events(world: World, thread: ThreadId) -> list[str]:
    """List the events of a thread, a branch's without those of the thread around it."""
    found: list[str] = []
    for each in walk_history(world.store, world.tip(thread)):
        found.append(str(each.record.event))
        if each.record.event == "start":
            break
    return found[::-1]


def _list_below(world: World, thread: ThreadId) -> list[ThreadId]:
    below = branches(world, thread)
    return [*below, *(inner for each in below for inner in _list_below(world, each))]


class Listener:
    """`uwf events -f` of one thread; when it is killed, another one begins after its last event."""

    def __init__(self, world: World, thread: ThreadId) -> None:
        self._world, self._thread = world, thread
        stream = EventStream(
            world.store, EventsRequest(thread), EventOptions(), list[Exception]().append
        )
        self._heard = [event["id"] for event in stream.read()]

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _begin(self) -> None:
        words = ("events", self._thread, "--follow", "--since", self._heard[-1])
        self._process = self._world.process(*words)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The last line of a killed one may be cut.
            if line.endswith(b"\n"):
                self._heard.append(json.loads(line)["id"])

    def kill(self) -> None:
        """Kill it, and go on with another one."""
        self._process.kill()
        self._reader.join(30)
        self._process.communicate()
        self._begin()

    def hear_all(self) -> list[str]:
        """Return the ids of all events, when the thread has ended."""
        self._reader.join(30)
        assert self._process.wait(timeout=30) == 0
        return self._heard


def _interfere(
    world: World, thread: ThreadId, listener: Listener, asked: tuple[int, random.Random]
) -> dict[str, int]:
    """Drive, step and patch until the thread has ended; kill the first drives."""
    planned, chance = asked
    patches: dict[str, int] = {}
    kills = planned
    deadline = time.monotonic() + 300
    while world.store.refs.find(ARCHIVE + thread) is None:
        assert time.monotonic() < deadline, "it does not end"
        with _drive(world, thread) as drive:
            if kills:
                _wait_for_work(world, chance.randint(1, 5))
                world.reopen()
                (branch,) = chance.sample(branches(world, thread) or [thread], k=1)
                for each in (thread, branch):
                    _patch(world, each, patches)
                # Another drive of the same thread is refused, one of a branch may work beside it.
                _run(world, "thread", "run", thread)
                with _drive(world, branch) as other:
                    _run(world, "thread", "step", branch)
                    drive.kill()
                    listener.kill()
                    _run(world, "thread", "step", thread, "--jobs", "2")
                    other.kill()
                kills -= 1
            drive.wait(timeout=200)
    assert kills < planned, "it ended before a drive was killed"
    return patches


def _patch(world: World, thread: ThreadId, patches: dict[str, int]) -> None:
    """Patch a thread, which may have ended; note in *patches* what it took."""
    key, value = f"patch{len(patches)}", len(patches)
    if _run(world, "thread", "patch", thread, json.dumps({key: value})) == 0:
        patches[key] = value


def _wait_for_work(world: World, more: int) -> None:
    """Wait until so many more agents have ended, or some time has passed: all may have ended."""
    worked = world.place / "worked"
    before = worked.stat().st_size if worked.exists() else 0
    for _ in range(200):
        time.sleep(0.01)
        if worked.exists() and worked.stat().st_size >= before + 3 * more:
            return


def _run(world: World, *words: str) -> int:
    process = world.process(*words)
    _, err = process.communicate(timeout=120)
    # Busy, a failed step that another one recorded, ended: all of these may be.
    assert process.returncode in {0, 1, 3, 4}, (words, err.decode())
    assert b"Traceback" not in err
    return process.returncode


@contextmanager
def _drive(world: World, thread: ThreadId) -> Iterator["subprocess.Popen[bytes]"]:
    drive = world.process("thread", "run", thread, "--jobs", "4")
    try:
        yield drive
    finally:
        drive.kill()
        drive.communicate()
