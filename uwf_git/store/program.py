"""Programs of git's: run to the end, with what they said.

Owns: running `git`, what git itself would run (ssh-keygen, gpg), and what git config says is to be
told of something; nothing else.
Knows nothing of: what is asked of them. Agents are run by agents/, never here.
Always true: a program never reads our terminal, and says nothing past what is given back.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import StoreFailed

_MOST_HEARD = 100_000
_IN_BACKGROUND = '"$@" &'


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
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    given: bytes = b"",
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ran:
    """Run *argv* to its end with *given* as its input; end it after *timeout_s*, if there is one.

    Raises:
        ProgramFailed: it could not be started, or took too long.
    """
    try:
        ran = subprocess.run(
            argv,
            env=dict(environ),
            input=given,
            cwd=cwd,
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(argv[0], f"was ended after {timeout_s:g} s") from error
    except (OSError, ValueError) as error:
        raise ProgramFailed(argv[0], f"could not be started: {_tell(error)}") from error
    debug("NB3E9M6J", "program ran", program=argv[0], status=ran.returncode)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def run_listener(
    argv: Sequence[str], environ: Mapping[str, str], *, given: bytes, cwd: str, timeout_s: float
) -> Ran:
    """Run *argv*, which somebody has set to be told *given*; end it, and its own, in time.

    Its streams are files: what it leaves running in the background keeps nobody waiting, and what
    it does not read of its input is no error.

    Raises:
        ProgramFailed: it could not be started, or took too long.
    """
    with (
        tempfile.TemporaryFile() as told,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        told.write(given)
        told.seek(0)
        try:
            process = subprocess.Popen(
                argv,
                env=dict(environ),
                cwd=cwd,
                stdin=told,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProgramFailed(argv[0], f"could not be started: {_tell(error)}") from error
        try:
            status = process.wait(timeout_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ProgramFailed(argv[0], f"was ended after {timeout_s:g} s") from error
        debug("DHVEXRK7", "listener ran", program=argv[0], status=status)
        stdout.seek(0)
        stderr.seek(0)
        return Ran(status, stdout.read(_MOST_HEARD), stderr.read(_MOST_HEARD))


def start_detached(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start *argv* so that it outlives us: own session, no streams, nobody who waits for it.

    It stands in the root directory, which nobody wants to unmount or remove.
    A shell starts it in the background and ends, so it is nobody's child: a parent that lives on
    has no dead child to bury.

    Raises:
        ProgramFailed: it could not be started.
    """
    try:
        subprocess.run(
            ["/bin/sh", "-c", _IN_BACKGROUND, "sh", *argv],
            env=dict(environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise ProgramFailed(argv[0], f"could not be started: {_tell(error)}") from error


def _tell(error: OSError | ValueError | subprocess.CalledProcessError) -> str:
    """Give what kept a program from starting, without the numbers that Python puts before it."""
    said = error.strerror if isinstance(error, OSError) else None
    return said or str(error)
