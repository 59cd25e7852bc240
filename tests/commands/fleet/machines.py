"""Machines for the tests of many: each a home directory with processes, and one hub for all."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from commands.at_work import wait_until
from fresh_store import REPOSITORY

PLAIN = """
name: plain
description: three steps
roles:
  one: {description: d, systemPrompt: p, outputSchema: true}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: one}
    - {type: agent, agentId: one}
    - {type: agent, agentId: one}
"""

SPLIT = """
name: split
description: a step, branches, a step
roles:
  one: {description: d, systemPrompt: p, outputSchema: true}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: one}
    - type: parallel
      merge: last
      nodes:
        - {type: agent, agentId: one}
        - {type: agent, agentId: one}
        - type: parallel
          merge: last
          nodes:
            - {type: agent, agentId: one}
            - {type: agent, agentId: one}
    - {type: agent, agentId: one}
"""
SPLIT_STEPS = 6

_AGENT = """#!/bin/sh
echo "$UWF_THREAD_ID" >> {paid}
{work}
echo ok
"""

FAST = ("--ttl", "3", "--poll", "0.3")


class Machine(NamedTuple):
    """A machine: its home, and what all machines have."""

    home: Path
    field: "Field"

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start `uwf` in a process group of its own."""
        environ = {**self.field.environ, "HOME": str(self.home)}
        environ.pop("XDG_STATE_HOME", None)
        return subprocess.Popen(
            [sys.executable, "-m", "uwf_git", *words],
            cwd=self.home,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, status: int = 0) -> str:
        """Run `uwf` to its end, and return what it printed."""
        with self.start(*words) as process:
            out, err = process.communicate()
        assert process.returncode == status, err
        return out

    def json(self, *words: str, status: int = 0) -> Any:
        """Run `uwf`, and return its document."""
        return json.loads(self.run(*words, "--format=json", status=status))

    def begin(self, workflow: str, *words: str) -> str:
        """Start a thread of *workflow*, and push it."""
        path = self.home / "flow.yaml"
        path.write_text(workflow)
        name = self.json("workflow", "put", str(path))["name"]
        agent = ("--agent", str(self.field.agent))
        thread = self.json("thread", "start", name, "-p", "Do it.", *agent, *words)["thread"]
        self.run("push")
        return str(thread)

    def drive(self, *words: str, status: int = 0) -> dict[str, object]:
        """Run `uwf drive`, and return its document."""
        found: dict[str, object] = json.loads(self.run("drive", *FAST, *words, status=status))
        return found

    def work(self, thread: str, *words: str) -> "subprocess.Popen[str]":
        """Start `uwf work` of *thread*."""
        return self.start("work", thread, "--hub", str(self.field.hub), "--trust", *FAST, *words)


class Field(NamedTuple):
    """The hub, the agent that all roles have, and what was paid."""

    place: Path
    environ: Mapping[str, str] = os.environ

    @property
    def hub(self) -> Path:
        """The bare repository."""
        return self.place / REPOSITORY

    @property
    def agent(self) -> Path:
        """The agent's program."""
        return self.place / "agent"

    @property
    def go(self) -> Path:
        """Where the agent of `let_wait` looks whether it may end."""
        return self.place / "go"

    def let(self, work: str) -> None:
        """Write the agent: it notes that it was paid, does *work*, and answers."""
        self.agent.write_text(_AGENT.format(paid=self.place / "paid", work=work))
        self.agent.chmod(0o755)

    def let_wait(self) -> None:
        """Write an agent that ends when `go` is there."""
        self.let(f"while [ ! -e {self.go} ]; do sleep 0.05; done")

    def machine(self, name: str) -> Machine:
        """Make a machine with an own home and a store with the hub as its remote."""
        home = self.place / name
        home.mkdir()
        made = Machine(home, self)
        if not self.hub.exists():
            made.run("init", "--shared", str(self.hub))
        made.run("remote", "add", "origin", str(self.hub))
        return made

    def paid(self) -> int:
        """Return how many agents have begun."""
        path = self.place / "paid"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_paid(self, count: int) -> None:
        """Wait until so many agents have begun."""
        wait_until(lambda: self.paid() >= count, f"{count} agents have not begun")

    def refs(self, folder: str = "refs") -> list[str]:
        """List the hub's refs below *folder*."""
        return self.git("for-each-ref", "--format=%(refname)", folder).split()

    def log(self, thread: str) -> list[str]:
        """List the subjects of a thread at the hub, the oldest first."""
        place = "archive" if f"refs/archive/{thread}" in self.refs() else "threads"
        ref = f"refs/{place}/{thread}"
        return self.git("log", "--reverse", "--first-parent", "--format=%s", ref).splitlines()

    def git(self, *words: str) -> str:
        """Run git at the hub."""
        argv = ["git", "-C", str(self.hub), *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def finished(process: "subprocess.Popen[str]", status: int = 0) -> str:
    """Wait until a process has ended with this status, and return what it complained of."""
    _out, err = process.communicate()
    assert process.returncode == status, err
    return err


@contextmanager
def ended(*processes: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill what is left of *processes* and their groups at the end."""
    try:
        yield
    finally:
        for each in processes:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.communicate()
