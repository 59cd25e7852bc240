"""`uwf` for the tests of its verbs: in this process, on a temporary store."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.ran import Ran
from commands.world import DEMO
from programs import write_program

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.session import Session
from uwf_git.cli.uwf import UWF
from uwf_git.store.git.config import set_config
from uwf_git.store.store import create_store

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


def make_uwf(tmp_path: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> Uwf:
    """Create an empty store, and return the program on it."""
    store = create_store(str(tmp_path / "store.git"))
    set_config(f"{store.path}/config", "uwf.fsync", "false")
    place = tmp_path / "place"
    place.mkdir()
    here = session._replace(cwd=str(place), environ=dict(os.environ), repo=store.path)
    return Uwf(place, here, capsys)
