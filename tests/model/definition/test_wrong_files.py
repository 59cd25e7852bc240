"""Wrong workflow files: a golden holds every problem of each, with its line and path."""

import json
from collections.abc import Callable
from pathlib import Path

from workflow_file import SOUND, problems_of, spoiled

CASES = json.loads((Path(__file__).parent / "made_up" / "wrong_files.json").read_text())


def wrong_file(old: str | None, new: str) -> str:
    """Return *new* alone, or at the end of the sound file, or for *old* in it (a…: from a on)."""
    if not old:
        return new if old is None else SOUND + new
    if old.endswith("…"):
        return SOUND[: SOUND.index(old[:-1])] + new
    return spoiled(old, new)


def test_every_problem_of_a_wrong_file_is_told(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for about, changes in CASES.items():
        told.append(f"# {about}")
        for old, new in changes:
            told += ["", *(f"> {line}".rstrip() for line in new.splitlines())]
            found = problems_of(wrong_file(old, new))
            told += [f"{line}: {path}: {message}" for line, path, message in found]
        told.append("")
    golden("workflow_files.txt", "\n".join(told))
