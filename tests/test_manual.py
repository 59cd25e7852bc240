"""The manual is true: the console blocks of transcripts/ do what they show."""

from pathlib import Path

import pytest
from test_transcripts import ROOT, told, transcripts


@pytest.mark.parametrize("path", list(transcripts(ROOT))[1:], ids=lambda path: path.name)
def test_transcript_does_what_it_shows(path: Path, tmp_path: Path) -> None:
    complaints = told(path, tmp_path / "work")

    if complaints:
        pytest.fail("\n\n".join(complaints), pytrace=False)
