"""`uwf plan run` and `resume` at a real terminal (pty): a used-up phase asks, and says why."""

import json
import os
import pty
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from workflows.plan_agent import write_plan_agent

from uwf_git.store.store import create_store

ASKED = "Continue with fresh tries (c), or stop (s)? "
CTRL_C = "\x03"

# Ctrl-C goes to whom the terminal belongs to.
_AT_TERMINAL = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A `uwf` at a terminal of its own, whose person types once a question is there."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self._unread = ""
        scripts = sysconfig.get_path("scripts")
        own = {"UWF_REPO": str(folder / "store.git"), "TERM": "xterm"}
        self._uwf = subprocess.Popen(
            [sys.executable, "-c", _AT_TERMINAL, "uwf", *words],
            cwd=folder,
            env={**os.environ, **own, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def read_until(self, question: str) -> str:
        """Return what is shown up to and with *question*."""
        while question not in self._unread:
            chunk = self._read()
            assert chunk, f"it ended without asking: {self._unread}"
            self._unread += chunk
        shown, _, self._unread = self._unread.partition(question)
        return shown + question

    def type(self, keys: str) -> None:
        """Type *keys*."""
        os.write(self._ours, keys.encode())

    def end(self) -> tuple[int, str]:
        """Return the exit status, and what else is shown."""
        while chunk := self._read():
            self._unread += chunk
        os.close(self._ours)
        return self._uwf.wait(), self._unread

    def _read(self) -> str:
        try:
            return os.read(self._ours, 65536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            # The other end is closed.
            return ""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    create_store(str(tmp_path / "store.git"))
    return tmp_path


def test_used_up_phase_asks_and_says_why_each_try_failed(place: Path) -> None:
    say = ("executor crash", "executor lie", "executor crash", "verifier reject")
    agent = write_plan_agent(place, *say)

    run = Terminal(place, "plan", "run", "做一个网站", "--agent", agent, "--max-retries", "2")
    shown = run.read_until(ASKED)
    assert "the execution of docs/plans/000-准备.md has failed:\n" in shown
    assert "try 1: exit status 1\ntry 2: files_created names 'src/nowhere'" in shown
    run.type("c\n")
    run.read_until("A hint for the next try (Enter: none): ")
    run.type("用 make\n")
    told = "try 1: exit status 1\ntry 2: rejected: 缺少测试; write some\n"
    assert told in run.read_until(ASKED)
    run.type(CTRL_C)
    assert run.end()[0] == 130
    assert state(place) == "waiting_human"

    resumed = Terminal(place, "plan", "resume")
    assert told in resumed.read_until(ASKED)
    resumed.type("s\n")
    status, shown = resumed.end()
    assert (status, "the plans were stopped\n" in shown) == (1, True)
    assert state(place) == "failed"


def test_ctrl_c_loses_nothing(place: Path) -> None:
    agent = write_plan_agent(place, "planner hang")

    run = Terminal(place, "plan", "run", "做一个网站", "--agent", agent, "--max-retries", "2")
    run.read_until("I am at work.")
    run.type(CTRL_C)
    status, shown = run.end()
    assert (status, "nothing was lost: `uwf plan resume` goes on" in shown) == (130, True)

    assert Terminal(place, "plan", "resume").end()[0] == 0
    assert state(place) == "completed"


def state(place: Path) -> str:
    document = json.loads((place / ".state/workflow.state.json").read_text())
    assert document["maxRetries"] == 2
    return str(document["phase"])
