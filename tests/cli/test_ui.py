"""`uwf ui`: what it says when it cannot begin, and how it opens a browser."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import Uwf
from commands.at_work import wait_until


def test_without_the_extra_it_says_what_to_install(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("uwf_git.web.ui")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    ran = uwf("ui")

    assert ran.status == 1
    assert "needs a package that is not installed: uvicorn" in ran.err
    assert "pip install 'uwf-git[ui]'" in ran.err


def test_port_that_is_taken_is_named(uwf: Uwf) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        ran = uwf("ui", "--no-open", "--port", str(port))

    assert ran.status == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in ran.err
    assert "port must be 0-65535" in uwf("ui", "--port", "65536").err


def test_browser_gets_a_file_and_no_token(uwf: Uwf, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = uwf.agent(f'echo "$@" >> {opened}', name="browser")
    process = subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "ui"],
        env={**os.environ, "BROWSER": f"{browser} %s", "UWF_REPO": str(uwf.session.repo)},
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
