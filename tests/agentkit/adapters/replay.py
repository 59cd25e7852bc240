"""Recorded runs of real programs (realcli/record.py), as calls that have just ended."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from uwf_git.agentkit.programs.command import EndedProgram
from uwf_git.agentkit.turn import AdapterQuestion
from uwf_git.agents.nested import NestedRun

RECORDED = Path(__file__).parent / "recorded"
MADE_UP = Path(__file__).parent / "made_up"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
}


def list_situations(name: str) -> list[str]:
    """List the recordings of a program."""
    return sorted(path.stem for path in (RECORDED / name).glob("*.json"))


def replay(folder: Path, name: str, situation: str, **question: Any) -> EndedProgram:
    """Return a recorded run, with the files that it left in *folder*."""
    found = json.loads((RECORDED / name / f"{situation}.json").read_text())
    for file in found.keys() - {"exit", "session", "stdout", "stderr"}:
        (folder / file).write_text(_text(found[file]))
    asked = {"session": found["session"]} if "session" in found else {}
    if situation.startswith("schema"):
        asked["schema"] = SCHEMA
    return end(
        folder,
        _text(found["stdout"]),
        status=found["exit"],
        stderr=_text(found["stderr"]),
        **{**asked, **question},
    )


def read_made_up(name: str, what: str) -> dict[str, dict[str, Any]]:
    """Return the made-up ``calls`` or ``ends`` of a program, by what each case shows."""
    found: dict[str, dict[str, Any]] = json.loads((MADE_UP / f"{name}.json").read_text())[what]
    return found


def replay_made_up(folder: Path, name: str, given: Mapping[str, Any]) -> EndedProgram:
    """Return a made-up run: a whole one, or one that changes a recorded run."""
    asked = ("schema", "session", "settings", "spent")
    question = {key: given[key] for key in asked if key in given}
    for file, printed in given.get("files", {}).items():
        (folder / file).write_text(_text(printed))
    if "recorded" not in given:
        stdout, stderr = (_text(given.get(stream, [])) for stream in ("stdout", "stderr"))
        return end(folder, stdout, status=given.get("status", 0), stderr=stderr, **question)
    ended = replay(folder, name, given["recorded"], **question)
    changed: dict[str, Any] = {"exit_code": given["status"]} if "status" in given else {}
    if "stderr" in given:
        changed["stderr"] = _text(given["stderr"]).encode()
    return replace(ended, run=ended.run._replace(**changed))


def make_question(**given: Any) -> AdapterQuestion:
    """Make a question; the schema ``role`` is ``SCHEMA``."""
    schema = {"schema": SCHEMA} if given.get("schema") == "role" else {}
    return AdapterQuestion(**{"prompt": "Review it.\n"} | given | schema)


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
    return EndedProgram(run, make_question(**question), str(folder))


def lines(*records: Any) -> str:
    """Write records as lines of JSON."""
    return _text(list(records))


def _text(printed: list[Any]) -> str:
    text = [each if isinstance(each, str) else json.dumps(each) for each in printed]
    return "".join(f"{line}\n" for line in text)
