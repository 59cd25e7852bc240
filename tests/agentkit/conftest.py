"""The fixtures of the kit's tests: the document of a turn, and a real store with one."""

import copy
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agentkit.person import seat
from agents.conftest import lives
from cli.program import Ran

from uwf_git.agentkit.turn import AskFailed
from uwf_git.engine.turn_context import AgentContext, parse_context

__all__ = ["lives", "seat"]

Document = Callable[..., dict[str, Any]]
"""Builds the document of a turn, with some of its top-level keys replaced."""

MakeContext = Callable[..., AgentContext]


def failure_of(call: Callable[[], Any]) -> AskFailed:
    """Return the failure of a question."""
    with pytest.raises(AskFailed) as caught:
        call()
    return caught.value


def make_step(role: str = "planner", **parts: Any) -> dict[str, Any]:
    """Return a step of a context, with some of its keys replaced or added."""
    plain = {"meta": {}, "content": "", "agent": "uwf-mock", "timestamp": 1}
    return {"hash": "7BQST3VW9F2MA", "role": role} | plain | parts


THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"

DOCUMENT: dict[str, Any] = {
    "thread": THREAD,
    "workflow": {
        "hash": "4KNM2PXR3B1QW",
        "name": "solve-issue",
        "description": "Solves an issue,\nfrom plan to review.",
    },
    "role": {
        "name": "reviewer",
        "description": "Reviews a change before it is merged.",
        "systemPrompt": "You review code.\nYou are strict, and you say why.",
        "outputSchema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean", "description": "Whether it may be merged."},
                "severity": {"enum": ["none", "minor", "major"]},
                "comments": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            },
            "required": ["approved"],
            "additionalProperties": False,
        },
    },
    "start": {
        "hash": "2MXBG6PN4A8JR",
        "prompt": "Fix the login bug described in issue #42.\n",
        "timestamp": 1_760_000_000_000,
    },
    "steps": [
        {
            "hash": "7BQST3VW9F2MA",
            "role": "planner",
            "meta": {"plan": ["read", "fix"]},
            "content": "First read, then fix.",
            "agent": "uwf-hermes",
            "timestamp": 1_760_000_001_000,
        },
        {
            "hash": "8FWKR3TN5V1QA",
            "role": "developer",
            "meta": {"summary": "fixed the redirect loop"},
            "content": "I changed src/auth.py.\n\n# Tests\n\nThey pass.\n",
            "agent": "uwf-cursor",
            "timestamp": 1_760_000_002_000,
        },
    ],
    "head": "8FWKR3TN5V1QA",
    "depth": 2,
    "visit": 1,
    "attempt": 1,
    "lastError": None,
    "state": {},
    "workdir": "/srv/shop",
}


@pytest.fixture
def document() -> Document:
    """Build the document of a reviewer's first turn."""

    def build(**replaced: Any) -> dict[str, Any]:
        return copy.deepcopy(DOCUMENT) | replaced

    return build


@pytest.fixture
def context(document: Document) -> MakeContext:
    """Build the context of a reviewer's first turn."""
    return lambda **replaced: parse_context(document(**replaced))


WORKFLOW = """\
name: count-words
description: Counts words.
roles:
  counter:
    description: Counts.
    systemPrompt: Count the words.
    outputSchema:
      type: object
      properties: {words: {type: integer}}
      required: [words]
moderator:
  - {from: $START, to: counter}
  - {from: counter, to: counter, condition: meta.words < 3}
  - {from: counter, to: $END}
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """A thread in a real store, at the first turn of the role ``counter``."""

    place: Path
    thread: str

    def run(self, *argv: str, **environ: str) -> Ran:
        """Run a program where the thread's agents run."""
        ran = subprocess.run(
            argv,
            cwd=self.place,
            env=self._environ(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def _environ(self, more: dict[str, str]) -> dict[str, str]:
        return os.environ | {"UWF_REPO": f"{self.place}/store.git"} | more

    def start(self, *argv: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start an adapter as the engine does."""
        return subprocess.Popen(
            [sys.executable, "-m", "uwf_git.agentkit.adapters", *argv],
            cwd=self.place,
            env=self._environ(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def adapter(self, *argv: str, **environ: str) -> Ran:
        """Run an adapter of ours there: ``turn.adapter("llm", turn.thread)``."""
        return self.python("-m", "uwf_git.agentkit.adapters", *argv, **environ)

    def python(self, *argv: str, **environ: str) -> Ran:
        """Run a Python program there."""
        return self.run(sys.executable, *argv, **environ)

    def installed(self, program: str, *argv: str, **environ: str) -> Ran:
        """Run a program that was installed with the package."""
        return self.run(str(Path(sysconfig.get_path("scripts"), program)), *argv, **environ)

    def uwf(self, *argv: str) -> Any:
        """Run the real command line; return the document that it prints."""
        ran = self.python("-m", "uwf_git", *argv)
        assert ran.status == 0, ran.err
        return json.loads(ran.out)


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Turn:
    """Start a thread with the real command line, once for all tests."""
    place = tmp_path_factory.mktemp("started")
    (place / "count-words.yaml").write_text(WORKFLOW)
    nowhere = Turn(place, "")
    assert nowhere.run("git", "init", "--quiet", "--bare", "store.git").status == 0
    nowhere.uwf("workflow", "put", "count-words.yaml")
    prompt = ("-p", "one two three", "--agent", "uwf-mock script.yaml")
    return Turn(place, nowhere.uwf("thread", "start", "count-words", *prompt)["thread"])


@pytest.fixture
def turn(started: Turn, tmp_path: Path) -> Turn:
    """Return a thread of the test's own."""
    place = tmp_path / "turn"
    shutil.copytree(started.place, place)
    return Turn(place, started.thread)
