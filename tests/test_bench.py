"""The benchmark runs: it is no test, so nobody else notices that it broke."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUN = Path(__file__).parent / "bench" / "run.py"


def test_every_part_measures_something(tmp_path: Path) -> None:
    words = [sys.executable, str(RUN), "--quick", "--rounds", "1", "--json"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environ)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert [text for text in texts_in(told) if text.startswith("exit status")] == []


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in each for text in texts_in(part)]
