"""What the tests of the library stand on: a store, functions that play, programs that do."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO

from uwf_git import AgentContext, TaskHandle, TaskRuntime
from uwf_git.library.players import PlayerFunction
from uwf_git.store.git_config import set_config
from uwf_git.store.store import create_store


def write(context: AgentContext) -> Mapping[str, Any]:
    """Play the writer of `demo`."""
    return {"text": f"{context.start.prompt} ({context.visit})"}


def check(context: AgentContext) -> Mapping[str, Any]:
    """Play its checker, who is content with a second text."""
    return {"ok": context.visit > 1}


PLAYERS: Mapping[str, PlayerFunction] = {"writer": write, "checker": check}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Make an empty store."""
    path = create_store(str(tmp_path / "store.git")).path
    # No power fails in a test; forcing every commit to the disk would only cost time.
    set_config(os.path.join(path, "config"), "uwf.fsync", "false")
    return path


@pytest.fixture
def runtime(store: str, tmp_path: Path) -> TaskRuntime:
    """Give a runtime in which functions play both roles of `demo`."""
    return TaskRuntime(store, players=PLAYERS, cwd=tmp_path)


@pytest.fixture
def task(runtime: TaskRuntime) -> TaskHandle:
    """Give a task of `demo` that functions play; they take four steps."""
    return runtime.start(DEMO, "Do it.")


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """Write a program for /bin/sh, and give its path."""

    def write_program(text: str, *, name: str = "agent") -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write_program
