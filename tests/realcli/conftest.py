"""The fixtures of the tests with real programs: a program with a temporary home."""

import copy
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import seal
from agentkit.conftest import DOCUMENT, MakeContext
from realcli.served_model import Served, serve
from realcli.vendors import Vendor, require

from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.engine.turn_context import parse_context

FRONT = "---\napproved: true\n---\nIt is **fine**.\n"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}

# Long enough for a busy machine.
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Cli:
    """One real program, at home in a place of its own, with a project to work in."""

    vendor: Vendor
    home: Path
    project: Path

    def question(self, model: Served, **more: Any) -> AdapterQuestion:
        """Build a question; *more* are fields of it, and settings by their names."""
        names = {"prompt", "schema", "session", "spent", "timeout_s", "silence_s", "step_dir"}
        settings = {key: value for key, value in more.items() if key not in names}
        fields = {key: value for key, value in more.items() if key in names}
        question = {
            "prompt": "Review it.\n",
            "workdir": str(self.project),
            "environ": self.vendor.environ(self.home, model.url),
            "settings": {"model": self.vendor.model, **settings},
            "timeout_s": _PATIENCE_S,
        }
        return AdapterQuestion(**{**question, **fields})

    @contextmanager
    def model(self, *turns: dict[str, Any]) -> Iterator[Served]:
        """Serve a model that follows the script *turns*."""
        with serve(*turns, aside=self.vendor.aside) as model:
            yield model

    def ask(self, *turns: dict[str, Any], **more: Any) -> AdapterAnswer:
        """Ask, while the model follows the script *turns*."""
        with self.model(*turns) as model:
            return self.vendor.adapter.ask(self.question(model, **more))

    def ask_twice(self) -> tuple[AdapterAnswer, AdapterAnswer]:
        """Ask, and ask again in the same session."""
        first = self.ask({"text": FRONT})
        second = self.ask({"text": FRONT}, session=first.session, spent=first.usage)
        assert second.session == first.session
        return first, second

    def fail(self, *turns: dict[str, Any], **more: Any) -> AskFailed:
        """Ask what has no answer."""
        with pytest.raises(AskFailed) as caught:
            self.ask(*turns, **more)
        return caught.value

    def ask_freely(self, *turns: dict[str, Any], **more: Any) -> AdapterAnswer:
        """Ask with all permissions: in its throw-away place there is nothing to lose."""
        return self.ask(*turns, permission=self.vendor.can_do_all, **more)

    @contextmanager
    def playing(
        self, *turns: dict[str, Any], step: bool = False, can_do_all: bool = True
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the adapter's own program for a turn of a thread; if it has not ended, it is killed.

        With *step* as the engine does: with a folder, and knowing the thread beforehand.
        """
        with self.model(*turns) as model:
            environ = self.vendor.environ(self.home, model.url)
            if can_do_all:
                environ[f"UWF_{self.vendor.name}_PERMISSION".upper()] = self.vendor.can_do_all
            place = self.home.parent
            environ |= {"UWF_MODEL": self.vendor.model, "UWF_REPO": str(place / "store.git")}
            thread = start_thread(place, environ)
            if step:
                (place / "step").mkdir()
                environ |= {"UWF_STEP_DIR": str(place / "step"), "UWF_THREAD_ID": thread}
            with subprocess.Popen(
                [sys.executable, "-m", "uwf_git.agentkit.adapters", self.vendor.name, thread],
                cwd=self.project, env=environ, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as child:  # fmt: skip
                try:
                    yield child
                finally:
                    child.kill()

    def play_by_tool(self) -> Any:
        """Play a turn in which the model hands in its answer by uwf's tool; return the reply."""
        handed_in = {"meta": {"approved": True}, "content": "By the tool."}
        turns = ({"tool": "*submit_result", "args": handed_in}, {"text": "Done."})
        with self.playing(*turns, step=True, can_do_all=False) as child:
            stdout, stderr = child.communicate()
        assert child.returncode == 0, stderr
        return json.loads(stdout)

    def survivors(self) -> list[str]:
        """List the processes that still live in its home."""
        return end_survivors(self.home.parent)


def end_survivors(place: Path) -> list[str]:
    """End the processes that still live in a place; list their commands."""
    found = seal.survivors(place, grace_s=3)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return [command for command, _ in found.values()]


WORKFLOW = """\
name: review
roles:
  reviewer:
    systemPrompt: Review it.
    outputSchema: {type: object, properties: {approved: {type: boolean}}, required: [approved]}
moderator:
  - {from: $START, to: reviewer}
  - {from: reviewer, to: $END}
"""


def start_thread(place: Path, environ: dict[str, str]) -> str:
    """Start a thread in the store below *place*, and return its id."""
    (place / "review.yaml").write_text(WORKFLOW)
    uwf(place, environ, "init", f"{place}/store.git")
    uwf(place, environ, "workflow", "put", "review.yaml")
    told = uwf(place, environ, "thread", "start", "review", "-p", "Look.", "--agent", "nobody")
    return str(told["thread"])


def uwf(place: Path, environ: dict[str, str], *argv: str) -> Any:
    """Run the real command line, and return the document that it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "uwf_git", *argv],
        cwd=place, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout or "null")


@pytest.fixture
def context() -> MakeContext:
    """Build the context of a reviewer's first turn."""
    return lambda: parse_context(copy.deepcopy(DOCUMENT))


@pytest.fixture
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """Yield the program of the test or its module (``VENDOR``); it leaves nothing behind."""
    vendor: Vendor = getattr(request, "param", None) or request.module.VENDOR
    require(vendor)
    found = Cli(vendor, tmp_path / "home", tmp_path / "project")
    found.home.mkdir()
    found.project.mkdir()
    yield found
    assert found.survivors() == []
