"""Recorded runs of real programs (realcli/record.py), as calls that have just ended."""

import json
from pathlib import Path
from typing import Any

from uwf_git.agentkit.adapters import (
    aider,
    claude,
    cli,
    codex,
    copilot,
    cursor,
    gemini,
    goose,
    hermes,
    opencode,
    qwen,
)
from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.programs.failures import EndedProgram
from uwf_git.agents.nested import NestedRun

PROGRAMS = (aider, claude, cli, codex, copilot, cursor, gemini, goose, hermes, opencode, qwen)
"""The adapters of programs that are driven by their command lines."""

RECORDED = Path(__file__).parent / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
}
FRONT = "---\napproved: true\n---\nIt is **fine**.\n"


def replay(folder: Path, name: str, situation: str, **question: Any) -> EndedProgram:
    """Return a recorded run, with the files that it left in *folder*."""
    found = json.loads((RECORDED / name / f"{situation}.json").read_text())
    for file in found.keys() - {"exit", "session", "stdout", "stderr"}:
        (folder / file).write_text(_text(found[file]))
    session = {"session": found["session"]} if "session" in found else {}
    return end(
        folder,
        _text(found["stdout"]),
        status=found["exit"],
        stderr=_text(found["stderr"]),
        **{**session, **question},
    )


def end(
    folder: Path, stdout: str = "", *, status: int = 0, stderr: str = "", **question: Any
) -> EndedProgram:
    """Return a run with this end."""
    run = NestedRun(
        outcome="exited",
        exit_code=status,
        stdout=stdout.encode(errors="surrogateescape"),
        stderr=stderr.encode(),
        duration_ms=1,
    )
    return EndedProgram(run, AdapterQuestion(**{"prompt": "Review it.\n"} | question), str(folder))


def lines(*records: Any) -> str:
    """Write records as lines of JSON."""
    return _text(list(records))


def _text(printed: list[Any]) -> str:
    text = [each if isinstance(each, str) else json.dumps(each) for each in printed]
    return "".join(f"{line}\n" for line in text)
