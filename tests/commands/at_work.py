"""A step under way in another process, to be stopped by a test.

Each process that a script writes into the file `pids` is killed when the test ends.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.world import World

from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import Snapshot

SAY_PID = "echo $$ >>pids\n"
RESULT = """echo '{"meta": {"text": "x", "ok": true}, "content": "What was said."}'\n"""
HANG = "while :; do sleep 0.05; done\n"
BEGUN = "echo begun >begun\n"

LONGEST_S = 60


@dataclass(slots=True)
class AtWork:
    """A thread whose step is under way."""

    world: World
    thread: ThreadId
    engine: "subprocess.Popen[bytes]"

    def finish(self) -> tuple[int, str]:
        """Wait for the engine's end; return its status and standard error."""
        _out, err = self.engine.communicate(timeout=LONGEST_S)
        return self.engine.returncode, err.decode()

    def lose_engine(self) -> None:
        """Kill the engine; its agent keeps running."""
        self.engine.kill()
        self.engine.communicate(timeout=LONGEST_S)

    def snapshot(self) -> Snapshot:
        """Read the thread's present snapshot."""
        self.world.reopen()
        return self.world.snapshot(self.thread)

    def attempt(self) -> dict[str, Any]:
        """Return the newest Attempt, with the texts that it refers to."""
        self.world.reopen()
        return newest_attempt(self.world, self.thread)

    def living(self) -> list[int]:
        """List the processes in `pids` that still live."""
        return [pid for pid in pids(self.world) if is_alive(pid)]


def newest_attempt(world: World, thread: ThreadId) -> dict[str, Any]:
    """Return the newest Attempt of a thread, with the texts that it refers to."""
    snapshot = world.snapshot(thread)
    name = snapshot.get_present().last_attempt
    assert name is not None
    payload = dict(snapshot.get_node(name).payload)
    for part in ("content", "stderr"):
        if part in payload:
            payload[part] = snapshot.get_node(payload[part]["$ref"]).payload
    return payload


def begin(world: World, script: str, *words: str, workflow: str | None = None) -> AtWork:
    """Start a step; its agent runs *script*, which has to write the file `begun`."""
    thread = world.start(world.program(SAY_PID + script), workflow=workflow or world.put().workflow)
    return at_work(world, thread, *words)


def at_work(world: World, thread: ThreadId, *words: str) -> AtWork:
    """Start the next step of *thread*, whose agent has to write the file `begun`."""
    begun = world.place / "begun"
    begun.unlink(missing_ok=True)
    engine = world.process("thread", "step", thread, *words)
    wait_for(begun, engine)
    return AtWork(world, thread, engine)


def wait_for(path: Path, engine: "subprocess.Popen[bytes] | None" = None) -> None:
    """Wait until *path* has a whole line; an *engine* must not end before."""

    def is_written() -> bool:
        written = path.exists() and path.read_bytes().endswith(b"\n")
        assert written or engine is None or engine.poll() is None, engine.communicate()
        return written

    wait_until(is_written, f"nobody wrote {path.name}")


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until *condition* holds; else fail, saying *what* did not come."""
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    wait_until(lambda: not is_alive(pid), f"{pid} lives on")


def pids(world: World) -> list[int]:
    """List the process ids that agents wrote."""
    path = world.place / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_alive(pid: int) -> bool:
    """Check whether a process still runs."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


def end_all(world: World) -> None:
    """Kill the processes that are left."""
    for pid in pids(world):
        if is_alive(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
