"""Programs of git's: run to the end, with what they said.

Owns: running `git` and what git itself would run (ssh-keygen, gpg), and nothing else.
Knows nothing of: what is asked of them. Agents are run by agents/, never here.
Always true: a program never reads our terminal, and says nothing past what is given back.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from uwf_git.errors import StoreFailed


class ProgramFailed(StoreFailed):
    """A program that the store needs is missing, or did not do what it was asked to."""

    code = "program-failed"

    def __init__(self, program: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{program} {problem}", hint=hint, program=program)


class Ran(NamedTuple):
    """A program that ended."""

    status: int
    """Its exit status; negative: the signal that ended it."""

    stdout: bytes
    stderr: bytes

    @property
    def last_line(self) -> str:
        """The last thing it said, for an error."""
        lines = (self.stderr or self.stdout).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Give the path of the program *name* on the PATH of *environ*, or None."""
    if os.path.dirname(name):
        return name if os.access(name, os.X_OK) else None
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def run_program(
    argv: Sequence[str], environ: Mapping[str, str], *, given: bytes = b"", cwd: str | None = None
) -> Ran:
    """Run *argv* to its end with *given* as its input.

    Raises:
        ProgramFailed: it could not be started.
    """
    try:
        ran = subprocess.run(
            argv, env=dict(environ), input=given, cwd=cwd, capture_output=True, check=False
        )
    except (OSError, ValueError) as error:
        raise ProgramFailed(argv[0], f"could not be started: {error}") from error
    return Ran(ran.returncode, ran.stdout, ran.stderr)
