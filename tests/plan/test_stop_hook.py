"""The generated script against the server, as a tool runs it: by its path, in any directory."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from plan.test_stop_notices import Taken, server, taken

from uwf_git.plan.hooks import StopServer, find_hook, write_plugin

__all__ = ["server", "taken"]

"""Far less than for ever; the hook ends within 2 s, but a busy machine starts Python slowly."""

Hook = Callable[..., None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the plugin, in a folder whose name is not ASCII."""
    project = tmp_path / "项目 one"
    project.mkdir()
    state_file = str(project / ".state/workflow.state.json")
    write_plugin(find_hook(str(project), ".plugins"), "1.0", state_file=state_file)
    return project


@pytest.fixture
def hook(project: Path) -> Hook:
    """Run the hook; it must print nothing and exit with 0 in time, whatever happens."""

    def run(given: bytes | int = b"{}", environ: Mapping[str, str] = os.environ) -> None:
        command = [sys.executable, "-I", str(project / ".plugins/workflow/hooks/stop_hook")]
        feed: dict[str, Any] = {"stdin": given} if isinstance(given, int) else {"input": given}
        began = time.monotonic()
        ran = subprocess.run(
            command, cwd="/", env=environ, capture_output=True, check=False, timeout=20, **feed
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert time.monotonic() - began < 10.0

    return run


def write_state(project: Path, content: Any) -> None:
    path = project / ".state/workflow.state.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def test_notice_arrives(project: Path, hook: Hook, server: StopServer, taken: Taken) -> None:
    state = {"phase": "executing", "address": "127.0.0.1", "port": server.port}
    write_state(project, b"\xef\xbb\xbf" + json.dumps(state).encode())

    hook(environ=os.environ | {"UWF_THREAD_ID": "T", "UWF_HEAD": "H", "LC_ALL": "C"})
    hook(b"", {"PATH": os.defpath})

    of_turn, seeds_form = taken.get(timeout=20), taken.get(timeout=20)
    assert of_turn[:3] == ("executing", "T", "H")
    assert seeds_form[:3] == ("executing", None, None)
    assert set(seeds_form.document) == {"type", "phase", "timestamp"}
    assert str(seeds_form.document["timestamp"]).endswith("+00:00")


def test_whatever_standard_input_holds(
    project: Path, hook: Hook, server: StopServer, taken: Taken
) -> None:
    write_state(project, {"phase": "planning", "port": server.port})
    read, write = os.pipe()
    try:
        hook(read)  # left open
    finally:
        os.close(read)
        os.close(write)
    hook(b"\xff\0 no JSON")
    hook(b"x" * 3_000_000)

    assert [taken.get(timeout=20).phase for _ in range(3)] == ["planning"] * 3


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"[1]",
        b"{",
        b"\xff",
        {"phase": "idle", "port": "PORT"},
        {"phase": "waiting_human", "port": "PORT"},
        {"phase": ["planning"], "port": "PORT"},
        {"port": "PORT"},
        {"phase": "planning"},
        {"phase": "planning", "port": "x"},
    ],
)
def test_nothing_is_sent_outside_of_a_phase(
    project: Path, hook: Hook, server: StopServer, taken: Taken, content: Any
) -> None:
    if isinstance(content, dict) and content.get("port") == "PORT":
        content = content | {"port": server.port}
    if content is not None:
        write_state(project, content)

    hook()

    assert taken.empty()


def test_server_that_answers_nothing(project: Path, hook: Hook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        write_state(project, {"phase": "planning", "port": listening.getsockname()[1]})
        hook()


def test_state_file_that_never_ends(project: Path, hook: Hook) -> None:
    (project / ".state").mkdir()
    os.mkfifo(project / ".state/workflow.state.json")

    hook()
