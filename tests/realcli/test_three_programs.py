"""One workflow, three real programs: codex plans, claude develops, gemini reviews."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import seal
from realcli.conftest import uwf
from realcli.served_model import MODEL, serve
from realcli.vendors import CLAUDE, CODEX, GEMINI, require

WORKFLOW = """\
name: fix
description: Fixes, from plan to review.
roles:
  planner:
    description: Plans.
    systemPrompt: Make a plan.
    outputSchema:
      type: object
      properties: {steps: {type: array, items: {type: string}}, risk: {type: string}}
      required: [steps]
  developer:
    description: Develops.
    systemPrompt: Follow the plan.
    outputSchema: {type: object, properties: {done: {type: boolean}}, required: [done]}
  reviewer:
    description: Reviews.
    systemPrompt: Review the work.
    outputSchema: {type: object, properties: {approved: {type: boolean}}, required: [approved]}
moderator:
  - {from: $START, to: planner}
  - {from: planner, to: developer}
  - {from: developer, to: reviewer, condition: meta.done}
  - {from: reviewer, to: $END, condition: meta.approved}
  - {from: reviewer, to: developer}
"""

PLAN = {"meta": {"steps": ["write it"], "risk": None}, "content": "One file will do."}
DONE = {"meta": {"done": True}, "content": "It is written."}

TURNS: tuple[dict[str, Any], ...] = (
    {"asked": "# You are planner", "json": PLAN},
    {"asked": "# You are developer", "run": "echo fixed > fix.txt"},
    {"asked": "# You are developer", "json": DONE},
    {"asked": "# You are reviewer", "text": "---\napproved: true\n---\nIt is **fine**.\n"},
    {"text": "Who are you?"},
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a place with a store and a project."""
    for vendor in (CLAUDE, CODEX, GEMINI):
        require(vendor)
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    (tmp_path / "fix.yaml").write_text(WORKFLOW)
    return tmp_path


def test_workflow_with_three_programs_runs_to_its_end(place: Path) -> None:
    with serve(*TURNS) as model:
        home = place / "home"
        environ = CODEX.environ(home, model.url)
        environ |= {**CLAUDE.furnish(home, model.url), **GEMINI.furnish(home, model.url)}
        environ |= {"UWF_REPO": f"{place}/store.git", "UWF_MODEL": MODEL}
        environ["UWF_CLAUDE_PERMISSION"] = CLAUDE.can_do_all
        uwf(place, environ, "init", f"{place}/store.git")
        run(place / "project", environ, place / "fix.yaml")

    thread = uwf(place, environ, "thread", "list", "--all")[0]["thread"]
    steps = uwf(place, environ, "thread", "show", thread, "--full")["steps"]
    assert [(step["role"], step["meta"], step["content"].strip()) for step in steps] == [
        ("planner", {"steps": ["write it"]}, "One file will do."),
        ("developer", {"done": True}, "It is written."),
        ("reviewer", {"approved": True}, "It is **fine**."),
    ]
    assert [step["rung"] for step in steps] == ["native", "native", "front-matter"]
    assert all(step["session"] and step["usage"] and step["trace"] for step in steps)
    assert (place / "project" / "fix.txt").read_text() == "fixed\n"
    assert "One file will do." in told("# You are developer", model.bodies)
    assert "It is written." in told("# You are reviewer", model.bodies)
    assert seal.survivors(place, grace_s=3) == {}


def run(project: Path, environ: dict[str, str], workflow: Path) -> None:
    """Run the workflow from beginning to end, as a person would."""
    agents = {"planner": "codex", "developer": "claude", "reviewer": "gemini"}
    words = [
        f"--agent={role}={sys.executable} -m uwf_git.agentkit.adapters {name}"
        for role, name in agents.items()
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "uwf_git", "run", str(workflow), "-p", "Fix it.", *words],
        cwd=project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def told(mark: str, bodies: list[dict[str, Any]]) -> str:
    """Return the prompt that contains *mark*."""
    return next(str(body) for body in bodies if mark in str(body))
