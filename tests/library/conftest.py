"""The fixtures of the library's tests: a store, players that are functions, and programs."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO
from programs import write_program

from uwf_git import AgentContext, TaskHandle, TaskRuntime
from uwf_git.library.players import PlayerFunction
from uwf_git.store.git.config import set_config
from uwf_git.store.store import create_store


def write(context: AgentContext) -> Mapping[str, Any]:
    """Play the writer of `demo`."""
    return {"text": f"{context.start.prompt} ({context.visit})"}


def check(context: AgentContext) -> Mapping[str, Any]:
    """Play the checker, which accepts the second text."""
    return {"ok": context.visit > 1}


PLAYERS: Mapping[str, PlayerFunction] = {"writer": write, "checker": check}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Make an empty store."""
    path = create_store(str(tmp_path / "store.git")).path
    # No test loses power, so fsync would only cost time.
    set_config(os.path.join(path, "config"), "uwf.fsync", "false")
    return path


@pytest.fixture
def runtime(store: str, tmp_path: Path) -> TaskRuntime:
    """Return a runtime in which functions play both roles of `demo`."""
    return TaskRuntime(store, players=PLAYERS, cwd=tmp_path)


@pytest.fixture
def task(runtime: TaskRuntime) -> TaskHandle:
    """Return a task of `demo` that functions play in four steps."""
    return runtime.start(DEMO, "Do it.")


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """Write a program for /bin/sh, and return its path."""
    return lambda text, name="agent": write_program(tmp_path / name, text)
