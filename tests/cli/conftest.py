"""Fixtures of the command line: a session independent of the machine, a small program."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from agentkit.person import seat
from agents.conftest import lives
from cli.demo import DEMO
from cli.program import Ran, Uwf, make_uwf
from store.signing_keys import key

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.session import Session
from uwf_git.model.names import ThreadId

__all__ = ["key", "lives", "seat"]

TESTS = Path(__file__).parent.parent


_COMMITTER = ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


@pytest.fixture
def session(clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> Session:
    """Return a session that is independent of the machine."""
    # Crash logs go there; it is the sealed one.
    environ = {name: os.environ[name] for name in ("XDG_STATE_HOME", *_COMMITTER)}
    return Session(cwd=os.getcwd(), environ=environ, now_ms=clock, new_thread_id=thread_ids)


@pytest.fixture
def uwf(tmp_path: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> Uwf:
    """Run `uwf` in this process, on an empty store: ``uwf("thread", "list")``."""
    return make_uwf(tmp_path, session, capsys)


@pytest.fixture
def thread(uwf: Uwf) -> str:
    """Return a thread of `demo` that has begun."""
    return uwf.begun()


@pytest.fixture
def demo(session: Session, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the demo program in this process: ``demo("say", "hello")``."""

    def run_demo(*words: str, given: Session = session) -> Ran:
        status = run(DEMO, words, prog="demo", environ=given.environ, session=given)
        out, err = capsys.readouterr()
        return Ran(status, out, err)

    return run_demo


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a Python module as its own process: ``start("cli.demo", "say", "hello")``.

    ``env=`` adds variables; ``stdin=`` and ``stdout=`` are those of `subprocess.Popen`.
    """

    def start_module(
        module: str,
        *words: str,
        env: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        variables = os.environ | {"PYTHONPATH": str(TESTS)} | (env or {})
        command = [sys.executable, "-m", module, *words]
        return subprocess.Popen(
            command, env=variables, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
        )

    return start_module


@pytest.fixture
def ran(start: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., Ran]:
    """Run a Python module as its own process to its end, as `start`."""

    def run_module(module: str, *words: str, fed: bytes | None = None, **settings: Any) -> Ran:
        if fed is not None:
            settings["stdin"] = subprocess.PIPE
        with start(module, *words, **settings) as process:
            out, err = process.communicate(fed)
        return Ran(process.returncode, (out or b"").decode(), err.decode())

    return run_module
