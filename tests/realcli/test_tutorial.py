"""The tutorial with a real agent program in place of its script, as it says one can."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import seal
import transcript
from realcli.served_model import MODEL, serve
from realcli.vendors import CLAUDE, require

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"

# The remark of the person, by which the second turn is known.
REMARK = "and by default the world"


def turns(file: Path) -> tuple[dict[str, Any], ...]:
    """Return what the model says: it reads, edits and reports, in each of two turns."""
    first = edit(file, 'f"Hello {name}"', 'f"Hello, {name}!"', "a comma and an exclamation mark")
    second = edit(file, "(name)", '(name="world")', "greet() greets the world by default")
    return (*first, *({**turn, "asked": REMARK} for turn in second))


def edit(file: Path, old: str, new: str, summary: str) -> list[dict[str, Any]]:
    """Return the turns of a model that changes *file*."""
    return [
        {"tool": "Read", "args": {"file_path": str(file)}},
        {"tool": "Edit", "args": {"file_path": str(file), "old_string": old, "new_string": new}},
        {"json": {"meta": {"summary": summary}, "content": "Done."}},
    ]


def test_tutorial_with_claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(CLAUDE)
    commands = [
        replace(each, text=each.text.replace("--agent ../developer", "--agent uwf-claude"))
        for block in transcript.parse(TUTORIAL.read_text(encoding="utf-8"))
        if not block.skipped
        for each in block.commands
    ]
    (home := tmp_path / "home").mkdir()
    (work := tmp_path / "work").mkdir()

    with serve(*turns(work / "hello" / "hello.py")) as model:
        for name, value in CLAUDE.environ(home, model.url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("UWF_MODEL", MODEL)
        outcomes = transcript.run(commands, cwd=work)

    said = "\n".join(line for outcome in outcomes for line in outcome.output)
    assert transcript.failures(commands, outcomes) == [], said
    assert '+def greet(name="world"):' in said
    assert "agents    developer uwf-claude · reviewer human" in said
    assert seal.survivors(tmp_path, grace_s=3) == {}
