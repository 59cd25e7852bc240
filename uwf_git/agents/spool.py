"""The spool: the files in which a run leaves its output and its end.

Owns: the names and the meaning of the files in a run directory.
Knows nothing of: how a process is started, watched or stopped.
Always true: the files speak for themselves. Whoever finds a run directory after the engine has
died can tell whether the agent began, runs, ended or was lost, and take what it left.
Files, never pipes: an agent outlives its engine without noticing, and a daemon that it left
behind with its stdout keeps nobody waiting.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from uwf_git.agents.request import AgentRun
from uwf_git.errors import AgentFailed, Refused

PID = "pid"
EXIT = "exit"
STDOUT = "stdout"
STDERR = "stderr"

STDERR_TAIL_BYTES = 64 * 1024

# Truncation at /dev/stdout or /dev/stderr, which scripts do, would leave a hole without O_APPEND.
_NEW_OUTPUT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC

# The newline tells a status that was written whole from a file that was only just created.
_STATUS = re.compile(rb"([0-9]{1,3})\n")


class AlreadyBegun(Refused):
    """Something has run, or still runs, in the run directory."""

    code = "already-begun"

    def __init__(self, run_dir: str) -> None:
        super().__init__(
            f"an agent has already begun in {run_dir}",
            hint="its result is still there; remove the directory to run the agent again",
            run_dir=run_dir,
        )


class SpoolFailed(AgentFailed):
    """The run directory cannot be written."""

    code = "spool-failed"

    def __init__(self, run_dir: str, problem: str) -> None:
        super().__init__(
            f"the run directory {run_dir} cannot be used: {problem}",
            hint="check its permissions, and whether the disk is full",
            run_dir=run_dir,
            problem=problem,
        )


class Finished(NamedTuple):
    """The agent ended and said how; ``collect`` takes what it left."""

    exit_code: int


class Running:
    """The agent lives: wait until its lock is free, then look again."""


class Lost:
    """The agent began and is gone, and nobody knows how it ended."""


class NeverBegan:
    """Nothing has run."""


def look_up(run_dir: str, *, alive_is_held: bool) -> Finished | Running | Lost | NeverBegan:
    """Tell what became of the run in *run_dir*; ask while holding the thread's lock.

    The exit status counts before the lock does: a daemon that the agent left behind may hold
    the lock for days.
    """
    exit_code = _read_exit_code(Path(run_dir))
    if exit_code is not None:
        return Finished(exit_code)
    if alive_is_held:
        return Running()
    return Lost() if (Path(run_dir) / PID).exists() else NeverBegan()


def collect(run_dir: str, *, max_output_bytes: int) -> AgentRun:
    """Take what a run left in *run_dir*, whoever it was that started it.

    Raises:
        SpoolFailed: the output is gone or cannot be read.
    """
    place = Path(run_dir)
    exit_code = _read_exit_code(place)
    try:
        begun_ns = (place / PID).stat().st_mtime_ns
        last = EXIT if exit_code is not None else STDOUT
        ended_ns = max(begun_ns, (place / last).stat().st_mtime_ns)
        with (place / STDOUT).open("rb") as file:
            stdout = file.read(max_output_bytes + 1)
        stderr = _read_tail(place / STDERR)
    except OSError as error:
        raise SpoolFailed(run_dir, f"{error.filename}: {error.strerror}") from error
    is_too_much = len(stdout) > max_output_bytes
    return AgentRun(
        outcome="lost" if exit_code is None else "too-much-output" if is_too_much else "exited",
        exit_code=exit_code,
        stdout=stdout[:max_output_bytes],
        stderr=stderr,
        started_ms=begun_ns // 1_000_000,
        duration_ms=(ended_ns - begun_ns) // 1_000_000,
    )


class Spool(NamedTuple):
    """The open outputs of one run."""

    run_dir: Path
    stdout: int
    stderr: int

    def read_stdout(self, limit: int) -> bytes:
        """Give at most the first *limit* bytes of stdout."""
        return _read_at(self.stdout, 0, limit)

    def read_stderr_tail(self) -> bytes:
        """Give the end of stderr."""
        start = max(0, os.fstat(self.stderr).st_size - STDERR_TAIL_BYTES)
        return _read_at(self.stderr, start, STDERR_TAIL_BYTES)

    def close(self) -> None:
        """Close the outputs; the files stay."""
        os.close(self.stdout)
        os.close(self.stderr)


def create_spool(run_dir: str) -> Spool:
    """Make *run_dir*, with empty outputs in it.

    Outputs that an engine left when it died before it started anything are replaced.

    Raises:
        AlreadyBegun: something has run there. It may have finished its work, which nobody
            should pay for twice; ``look_up`` tells.
        SpoolFailed: it cannot be written.
    """
    place = Path(run_dir)
    if (place / PID).exists() or (place / EXIT).exists():
        raise AlreadyBegun(run_dir)
    try:
        place.mkdir(parents=True, exist_ok=True)
        stdout = _create_output(place / STDOUT)
        try:
            stderr = _create_output(place / STDERR)
        except OSError:
            os.close(stdout)
            raise
    except OSError as error:
        raise SpoolFailed(run_dir, error.strerror or str(error)) from error
    return Spool(place, stdout, stderr)


def _create_output(path: Path) -> int:
    path.unlink(missing_ok=True)
    return os.open(path, _NEW_OUTPUT, 0o600)


def _read_exit_code(place: Path) -> int | None:
    try:
        with (place / EXIT).open("rb") as file:
            status = _STATUS.fullmatch(file.read(8))
    except OSError:
        return None
    return int(status[1]) if status else None


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _read_at(file.fileno(), max(0, size - STDERR_TAIL_BYTES), STDERR_TAIL_BYTES)


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    chunks = []
    while size > 0 and (chunk := os.pread(descriptor, min(size, 1024 * 1024), start)):
        chunks.append(chunk)
        start += len(chunk)
        size -= len(chunk)
    return b"".join(chunks)
