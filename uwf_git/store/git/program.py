"""Run git, the programs that git would run, and commands from git config; capture their output.

A program never reads the terminal. Agents run in agents/, not here.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import StoreFailed
from uwf_git.git_environment import without_local_variables
from uwf_git.store.git.config import find_program

_MOST_BYTES = 100_000
_IN_BACKGROUND = '"$@" &'


class ProgramFailed(StoreFailed):
    code = "program-failed"

    def __init__(self, program: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{program} {problem}", hint=hint, program=program)


class ProgramTooSlow(ProgramFailed):
    code = "program-too-slow"

    def __init__(self, program: str, timeout_s: float) -> None:
        super().__init__(program, f"was killed after {timeout_s:g} s")


class Ran(NamedTuple):
    status: int
    """Its exit status; negative: the signal that killed it."""

    stdout: bytes
    stderr: bytes

    @property
    def last_line(self) -> str:
        """The last line of its output that is not empty, for an error."""
        lines = (self.stderr or self.stdout).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def run_program(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    given: bytes = b"",
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ran:
    """Run *argv* with *given* as its input; kill it after *timeout_s* if that is set."""
    try:
        with _starting(argv[0]):
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
        raise ProgramTooSlow(argv[0], timeout_s or 0) from error
    debug("NB3E9M6J", "program ran", program=argv[0], status=ran.returncode)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def run_listener(
    argv: Sequence[str], environ: Mapping[str, str], *, given: bytes, cwd: str, timeout_s: float
) -> Ran:
    """Run *argv*, a command from git config, with *given* as its input, for at most *timeout_s*.

    At the timeout its process group is killed. Its streams are files: a process that it leaves in
    the background does not delay the return, and input that it does not read is no error.
    """
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(given)
        stdin.seek(0)
        with _starting(argv[0]):
            process = subprocess.Popen(
                argv,
                env=dict(environ),
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            status = process.wait(timeout_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ProgramTooSlow(argv[0], timeout_s) from error
        debug("DHVEXRK7", "listener ran", program=argv[0], status=status)
        stdout.seek(0)
        stderr.seek(0)
        return Ran(status, stdout.read(_MOST_BYTES), stderr.read(_MOST_BYTES))


def start_background_program(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start *argv* in the background, in a session of its own, without streams.

    Its directory is /, so it keeps no other directory busy. A shell starts it and ends, so that
    init reaps it, and a long-running caller gets no zombie.
    """
    with _starting(argv[0]):
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


@contextmanager
def _starting(program: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ProgramFailed(program, f"could not be started: {reason or error}") from error


# Set a setting in the user's git config, by git: the only write outside a store.


def set_user_config(environ: Mapping[str, str], name: str, value: str) -> None:
    git = find_program("git", environ)
    hint = f"put it into your ~/.gitconfig yourself: {name}"
    if git is None:
        raise ProgramFailed("git", "is not on the PATH", hint=hint)
    argv = [git, "config", "--global", "--replace-all", name, value]
    ran = run_program(argv, without_local_variables(environ))
    if ran.status != 0:
        raise ProgramFailed("git config --global", f"failed: {ran.last_line}", hint=hint)
