"""Fixtures for agents: programs written for a test, and no leftovers."""

import gc
import os
import pty
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from programs import write_program

from uwf_git.agents.terminal import Terminal

Program = Callable[[str], str]
"""Write a script and return its path."""

Lives = Callable[[int], bool]
"""Check whether a process still runs."""

WaitFor = Callable[[Path], bytes]
"""Wait until a file has content, and return the content."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Write scripts that can be executed; without a #! they are for /bin/sh."""

    def write(text: str) -> str:
        number = len(list(tmp_path.glob("program-*")))
        return write_program(tmp_path / f"program-{number}", text)

    return write


@pytest.fixture
def lives() -> Lives:
    """Ask ps, which knows zombies from the living on every system."""

    def ask(pid: int) -> bool:
        command = ["ps", "-o", "stat=", "-p", str(pid)]
        state = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        return bool(state) and not state.startswith("Z")

    return ask


@pytest.fixture
def wait_for() -> WaitFor:
    """Wait for another process's file, up to ten seconds."""

    def wait(path: Path) -> bytes:
        deadline = time.monotonic() + 10
        while not (path.exists() and path.read_bytes()):
            assert time.monotonic() < deadline, f"nobody wrote {path.name}"
            time.sleep(0.01)
        return path.read_bytes()

    return wait


@pytest.fixture
def tidy() -> Iterator[None]:
    """Check that a test leaves no file open, no thread and no child behind.

    What earlier tests of this process left may go meanwhile.
    """
    gc.collect()
    before = _list_open()
    yield
    assert _list_open() - before == set()


def _list_open() -> set[str]:
    threads = [f"thread {each.ident}" for each in threading.enumerate()]
    path = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    children = path.read_text().split() if path.exists() else []
    return {*os.listdir("/dev/fd"), *threads, *(f"child {each}" for each in children)}


@pytest.fixture
def screen() -> Iterator[tuple[int, Terminal]]:
    """Yield a terminal, and our end of it."""
    ours, theirs = pty.openpty()
    terminal = Terminal({"UWF_TTY": os.ttyname(theirs)}, note=print)
    os.close(theirs)
    yield ours, terminal
    terminal.close()
    os.close(ours)
