"""Programs that tests write."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def write_program(path: Path, script: str) -> str:
    """Write a script, for /bin/sh if it names no other program; return its path."""
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def run_python(
    *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run Python, which must have nothing to complain of; return what it prints."""
    ran = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout
