"""Our programs run as a user runs them, and what they print."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from commands.world import DEMO
from programs import write_program

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup, run
from uwf_git.cli.session import Session
from uwf_git.cli.uwf import UWF
from uwf_git.store.git.config import set_config
from uwf_git.store.store import create_store

# The result of a program that has ended.


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    def says(self, status: int, said: str) -> "Ran":
        """Check its status, and that standard error has *said*; return it."""
        assert self.status == status, self
        assert said in self.err, self.err
        return self

    def refused(self, status: int, said: str) -> "Ran":
        """Check that it printed nothing, and the rest as `says` does."""
        assert self.out == "", self
        return self.says(status, said)


# `uwf` for the tests of its verbs: in this process, on a temporary store.

ANSWER = """echo '{"meta": {"text": "x", "ok": true}, "content": "What was said."}'"""


@dataclass(frozen=True, slots=True)
class Uwf:
    """The program, and the working directory of its caller."""

    place: Path
    session: Session
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str, **replaced: Any) -> Ran:
        """Run it; keywords replace fields of the session."""
        session = self.session._replace(**replaced)
        status = run(UWF, words, prog="uwf", environ=session.environ, session=session)
        out, err = self.capsys.readouterr()
        return Ran(status, out, err)

    def json(self, *words: str, **replaced: Any) -> Any:
        """Run it, and return the document that it prints."""
        ran = self(*words, **replaced)
        assert ran.status == 0, ran.err
        return json.loads(ran.out)

    def process(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start it as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "uwf_git", *words],
            env={**os.environ, "UWF_REPO": str(self.session.repo)},
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def agent(self, script: str = ANSWER, *, name: str = "agent") -> str:
        """Write a shell program that plays a role, and return its path."""
        return write_program(self.place / name, script)

    def file(self, text: str = DEMO, *, name: str = "demo.yaml") -> str:
        """Write a file, and return its path."""
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def begun(self, *agents: str, workflow: str = DEMO) -> str:
        """Register a workflow, start a thread of it, and return its id."""
        name = self.json("workflow", "put", self.file(workflow))["name"]
        given = [word for agent in agents or (self.agent(),) for word in ("--agent", agent)]
        return str(self.json("thread", "start", name, "-p", "Do it.", *given)["thread"])

    def stepped(self, *agents: str, steps: int = 1, **given: str) -> str:
        """Start a thread as `begun` does, and take steps of it."""
        thread = self.begun(*agents, **given)
        for _ in range(steps):
            self.json("thread", "step", thread)
        return thread

    def killed(self) -> str:
        """Start a thread, and kill it."""
        thread = self.begun()
        self.json("thread", "kill", thread)
        return thread


def make_uwf(tmp_path: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> Uwf:
    """Create an empty store, and return the program on it."""
    store = create_store(str(tmp_path / "store.git"))
    set_config(f"{store.path}/config", "uwf.fsync", "false")
    place = tmp_path / "place"
    place.mkdir()
    here = session._replace(cwd=str(place), environ=dict(os.environ), repo=store.path)
    return Uwf(place, here, capsys)


# Rules for every table of commands, `uwf`'s and `json-cas`'s alike.


def entries(group: LazyGroup, path: str) -> Iterator[tuple[str, LazyCommand | LazyGroup]]:
    """Yield every entry of *group* and its groups, with its words."""
    for name, entry in group.table.items():
        yield f"{path} {name}", entry
        if isinstance(entry, LazyGroup):
            yield from entries(entry, f"{path} {name}")


def load(entry: LazyCommand | LazyGroup) -> click.Command:
    """Return the command of *entry*."""
    return entry if isinstance(entry, LazyGroup) else entry.load()


def check_command(path: str, entry: LazyCommand | LazyGroup) -> None:
    """Check a command against its table, and against the rules for help pages."""
    command = load(entry)
    with click.Context(command, info_name=path, max_content_width=200) as context:
        page = command.get_help(context)

    assert entry.summary == (command.help or "").strip().partition("\n")[0].removesuffix(".")
    assert entry.summary
    assert entry.summary[0].isupper()
    assert "EXAMPLE" in page
    assert path in page.partition("EXAMPLE")[2]
    assert "EXIT STATUS:\n  " in page
    assert "--repo PATH" in page
    assert "--format" in page


# A hub for the command line, and a second store.


def make_hub(uwf: Uwf) -> str:
    """Create an empty repository, and the remote origin for it."""
    hub = create_store(str(uwf.place.parent / "hub.git")).path
    uwf.json("remote", "add", "origin", hub)
    return hub


def clone(uwf: Uwf, hub: str) -> dict[str, Any]:
    """Clone *hub*, and return a function that runs `uwf` on the clone."""
    made = uwf.json("clone", hub, "copy.git")
    assert Path(made["repo"]).is_dir()
    return {"repo": made["repo"]}
