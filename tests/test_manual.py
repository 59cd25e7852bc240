"""The manual is true: the console blocks of docs/ and transcripts/ do what they show."""

import shutil
from pathlib import Path

import pytest
import transcript
from test_transcripts import MATERIAL, ROOT, told, transcripts

# What a newcomer types.
FIRST_PAGES = ("README.md", "docs/tutorial.md")


@pytest.mark.parametrize(
    "path", list(transcripts(ROOT))[1:], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_transcript_does_what_it_shows(path: Path, tmp_path: Path) -> None:
    complaints = told(path, tmp_path / "work")

    if complaints:
        pytest.fail("\n\n".join(complaints), pytrace=False)


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_first_page_runs_at_a_terminal(page: str, tmp_path: Path) -> None:
    blocks = transcript.parse((ROOT / page).read_text(encoding="utf-8"))
    commands = [command for block in blocks if not block.skipped for command in block.commands]
    work = tmp_path / "work"
    work.mkdir()
    for name in MATERIAL:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, work / name)

    outcomes = transcript.run(commands, cwd=work, at_terminal=True)

    assert transcript.failures(commands, outcomes) == []
    assert any("✓ completed" in line for outcome in outcomes for line in outcome.output)
