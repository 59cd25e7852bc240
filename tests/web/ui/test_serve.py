"""The server as a process: it begins, tells what changes, waits for nobody, and ends."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from commands.at_work import wait_until
from commands.world import World
from web.ui.page_server import PageServer, run_page


def test_commit_of_another_process_is_seen_and_what_was_missed_too(
    server: PageServer, shared_world: World
) -> None:
    with server.stream() as lines:
        hello = next(lines)
        thread = shared_world.begun()
        told = next(lines)
    assert (hello["type"], hello["reset"]) == ("hello", True)
    assert (told["type"], told["threads"]) == ("threads", [thread])
    shared_world.step(thread)
    with server.stream(f"?since={told['at']}") as lines:
        assert next(lines)["reset"] is False
        assert next(lines)["threads"] == [thread]


def test_driver_that_is_refused_is_told_beside_what_was_recorded(
    server: PageServer, shared_world: World
) -> None:
    marker = shared_world.place / "ran"
    thread = shared_world.begun()
    # The agent came with the thread: nobody has trusted it here.
    assert shared_world.store.trust_file is not None
    Path(shared_world.store.trust_file).write_text("")
    server.ask("POST", f"/api/threads/{thread}/pause", {"reason": "wait"})

    reply = server.ask("POST", f"/api/threads/{thread}/resume", {"go": True})

    assert reply.status == 200
    assert reply.json["driver"] is None
    assert "a command that is not trusted here: nobody" in reply.json["refused"]["message"]
    advised = f"uwf --repo {shared_world.store.path} thread step {thread} --trust"
    assert advised in reply.json["refused"]["hint"]
    refused = server.ask("POST", f"/api/threads/{thread}/run")
    assert refused.status == 422
    assert advised in refused.json["error"]["hint"]
    assert not marker.exists()


def test_token_is_in_no_argument_and_its_file_is_the_users_own(server: PageServer) -> None:
    shown = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    page = Path(server.store, "uwf", f"ui-{server.process.pid}.html")

    assert server.token.encode() not in shown
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert server.token in page.read_text()
    assert len(server.token) >= 43


def test_ctrl_c_ends_it_at_once_and_silently_with_streams_open(
    world: World, tmp_path: Path
) -> None:
    world.begun()
    with run_page(world.store.path, tmp_path) as server, ExitStack() as stack:
        for _ in range(8):
            next(stack.enter_context(server.stream()))
        idle, half = (stack.enter_context(server.connect()) for _ in range(2))
        half.sendall(b"POST /api/threads HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n")
        assert idle
        begun = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        out, err = server.process.communicate(timeout=10)
        assert time.monotonic() - begun < 3
        assert (out, err) == (b"", b"")
        assert server.process.returncode == 0
        left = [name for name in os.listdir(f"{world.store.path}/uwf") if name.startswith("ui-")]
        assert left == []


def test_browser_gets_a_file_and_no_token(world: World, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = world.program(f'echo "$@" >> {opened}', name="browser")
    process = subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "ui"],
        env={**os.environ, "BROWSER": f"{browser} %s", "UWF_REPO": world.store.path},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        wait_until(opened.exists, "no browser was opened")
        wait_until(lambda: opened.read_text().endswith("\n"), "no browser was told a page")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)

    assert (out, err, process.returncode) == (b"", b"", 0)
    shown = opened.read_text()
    assert shown.startswith("file:///")
    assert f"ui-{process.pid}.html" in shown
    assert told["address"].partition("#")[2] not in shown
