"""Run files: pid, stdout, stderr and exit, by which a run outlives the engine that started it.

Files, not pipes: the agent does not notice the death of its engine, and a daemon that keeps its
stdout open does not delay a step. The next engine reads from them whether the agent began, runs,
ended or was lost.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from uwf_git.agents.output_file import OutputFile, create_output
from uwf_git.agents.request import DEFAULT_MAX_LOG_BYTES, AgentRun
from uwf_git.errors import AgentFailed, Refused

PID = "pid"
EXIT = "exit"
STDOUT = "stdout"
STDERR = "stderr"

# The newline tells a status that was written whole from a file that was only just created.
_STATUS = re.compile(rb"([0-9]{1,3})\n")


class AlreadyBegun(Refused):
    """An agent has run, or still runs, in the run directory."""

    code = "already-begun"

    def __init__(self, run_dir: str) -> None:
        super().__init__(
            f"an agent has already begun in {run_dir}",
            hint="its result is still there; remove the directory to run the agent again",
            run_dir=run_dir,
        )


class RunDirUnusable(AgentFailed):
    """The run directory cannot be read or written."""

    code = "spool-failed"

    def __init__(self, run_dir: str, problem: str) -> None:
        super().__init__(
            f"the run directory {run_dir} cannot be used: {problem}",
            hint="check its permissions, and whether the disk is full",
            run_dir=run_dir,
            problem=problem,
        )


class RunFinished(NamedTuple):
    """The agent ended and its exit status is known."""

    exit_code: int


class RunAlive:
    """The agent runs."""


class RunLost:
    """The agent began and is gone without an exit status."""


class RunNotStarted:
    """No agent began."""


RunState = RunFinished | RunAlive | RunLost | RunNotStarted


def read_run_state(run_dir: str, *, alive_is_held: bool) -> RunState:
    """Return the state of the run in *run_dir*; the caller holds the thread's lock.

    The exit status counts before the lock: a daemon that the agent left behind may hold the
    lock for days.
    """
    exit_code = _read_exit_code(Path(run_dir))
    if exit_code is not None:
        return RunFinished(exit_code)
    if alive_is_held:
        return RunAlive()
    return RunLost() if (Path(run_dir) / PID).exists() else RunNotStarted()


def read_run_result(
    run_dir: str, *, max_output_bytes: int, max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
) -> AgentRun:
    """Return what a run left in *run_dir*, also if another engine started it.

    Raises:
        RunDirUnusable: the output is gone or cannot be read.
    """
    place = Path(run_dir)
    exit_code = _read_exit_code(place)
    try:
        begun_ns = (place / PID).stat().st_mtime_ns
        last = EXIT if exit_code is not None else STDOUT
        ended_ns = max(begun_ns, (place / last).stat().st_mtime_ns)
        with (place / STDOUT).open("rb") as file:
            stdout = file.read(max_output_bytes + 1)
        with (place / STDERR).open("rb") as file:
            stderr = OutputFile(file.fileno()).read_tail(max_log_bytes)
    except OSError as error:
        raise RunDirUnusable(run_dir, f"{error.filename}: {error.strerror}") from error
    is_too_much = len(stdout) > max_output_bytes
    return AgentRun(
        outcome="lost" if exit_code is None else "too-much-output" if is_too_much else "exited",
        exit_code=exit_code,
        stdout=stdout[:max_output_bytes],
        stderr=stderr,
        started_ms=begun_ns // 1_000_000,
        duration_ms=(ended_ns - begun_ns) // 1_000_000,
    )


def find_run_start_ms(run_dir: str) -> int | None:
    """Return when the agent began, in milliseconds since 1970; None if it has not."""
    try:
        return os.stat(os.path.join(run_dir, PID)).st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def read_run_group(run_dir: str) -> int | None:
    """Return the agent's process group as its shell wrote it; None if it is not there."""
    try:
        group = int(Path(run_dir, PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    # To kill(2), 0 is our own group and 1 every process.
    return group if group > 1 else None


class RunOutputs(NamedTuple):
    """The open outputs of one run."""

    run_dir: Path
    stdout: OutputFile
    stderr: OutputFile

    def close(self) -> None:
        """Close the outputs; the files stay."""
        self.stdout.close()
        self.stderr.close()


def create_run_outputs(run_dir: str) -> RunOutputs:
    """Create *run_dir* with empty outputs.

    Outputs of an engine that died before it started the agent are replaced.

    Raises:
        AlreadyBegun: an agent began there. It may have finished work that must not be paid for
            twice; see ``read_run_state``.
        RunDirUnusable: it cannot be written.
    """
    place = Path(run_dir)
    if (place / PID).exists() or (place / EXIT).exists():
        raise AlreadyBegun(run_dir)
    try:
        place.mkdir(parents=True, exist_ok=True)
        stdout = create_output(str(place / STDOUT))
        try:
            stderr = create_output(str(place / STDERR))
        except OSError:
            stdout.close()
            raise
    except OSError as error:
        raise RunDirUnusable(run_dir, error.strerror or str(error)) from error
    return RunOutputs(place, stdout, stderr)


def _read_exit_code(place: Path) -> int | None:
    try:
        with (place / EXIT).open("rb") as file:
            status = _STATUS.fullmatch(file.read(8))
    except OSError:
        return None
    return int(status[1]) if status else None
