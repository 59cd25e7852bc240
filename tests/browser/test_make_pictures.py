"""The pictures of README.md are made by a script that anyone can run again."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "make_pictures.py"


def test_pictures_are_made_anew(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    del browser  # only so that the test is skipped without one
    # Chromium has its socket there, whose path may have 107 characters.
    place = tmp_path_factory.mktemp("p")

    ran = subprocess.run(
        [sys.executable, SCRIPT, place / "pictures"],
        env={**os.environ, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    made = {path.name: path.read_bytes() for path in (place / "pictures").iterdir()}
    assert sorted(made) == ["page-dark.png", "page-light.png", "run.svg"]
    assert b"developer: ran twice" in made["run.svg"]
    assert made["page-dark.png"] != made["page-light.png"]
    assert [path.name for path in place.iterdir()] == ["pictures"]
