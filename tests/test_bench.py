"""The benchmark runs: it is no test, so nobody else notices that it broke."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).parent / "bench" / "run.py"


def test_every_part_measures_something(tmp_path_factory: pytest.TempPathFactory) -> None:
    # A short name: Chromium has its socket there, whose path may have 107 characters.
    told = run("--rounds", "1", TMPDIR=str(tmp_path_factory.mktemp("b")))
    assert [text for text in texts_in(told) if text.startswith("exit status")] == []
    failures = [row["failure"] for row in told["parts"]["paint"][0]["rows"] if "failure" in row]
    assert [text for text in failures if not text.startswith("skipped: ")] == []


def test_part_without_a_browser_says_what_is_missing(tmp_path: Path) -> None:
    told = run("paint", TMPDIR=str(tmp_path), PATH=str(tmp_path), UWF_CHROMIUM="")
    [table] = told["parts"]["paint"]
    [row] = table["rows"]
    assert re.fullmatch(
        r"skipped: no (Playwright|chromium); tests/browser/install\.sh gets it", row["failure"]
    )


def run(*words: str, **environ: str) -> Any:
    """Return what a quick run tells."""
    ran = subprocess.run(
        [sys.executable, str(RUN), "--quick", "--json", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in each for text in texts_in(part)]
