"""Programs that tests write."""

from pathlib import Path


def write_program(path: Path, script: str) -> str:
    """Write a script, for /bin/sh if it names no other program; return its path."""
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)
