"""Recorded runs of real programs, given to an adapter as if they had just ended.

Owns: reading recorded/<program>/<situation>.json. Knows nothing of: how they came about
(tests/realcli/record.py).
"""

import json
from pathlib import Path
from typing import Any

from uwf_git.agentkit.adapter import Asked
from uwf_git.agentkit.command_adapter import Ended
from uwf_git.agents.nested import NestedRun

RECORDED = Path(__file__).parent / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
}
FRONT = "---\napproved: true\n---\nIt is **fine**.\n"


def replay(folder: Path, name: str, situation: str, **asked: Any) -> Ended:
    """Give a recorded run, with the files that it left in *folder*."""
    found = json.loads((RECORDED / name / f"{situation}.json").read_text())
    for file in found.keys() - {"exit", "session", "stdout", "stderr"}:
        (folder / file).write_text(_text(found[file]))
    session = {"session": found["session"]} if "session" in found else {}
    return end(
        folder,
        _text(found["stdout"]),
        status=found["exit"],
        stderr=_text(found["stderr"]),
        **{**session, **asked},
    )


def end(
    folder: Path, stdout: str = "", *, status: int = 0, stderr: str = "", **asked: Any
) -> Ended:
    """Give a run that has ended so."""
    run = NestedRun(
        outcome="exited",
        exit_code=status,
        stdout=stdout.encode(errors="surrogateescape"),
        stderr=stderr.encode(),
        duration_ms=1,
    )
    return Ended(run, Asked(**{"prompt": "Review it.\n"} | asked), str(folder))


def lines(*records: Any) -> str:
    """Write records as lines of JSON."""
    return _text(list(records))


def _text(printed: list[Any]) -> str:
    text = [each if isinstance(each, str) else json.dumps(each) for each in printed]
    return "".join(f"{line}\n" for line in text)
