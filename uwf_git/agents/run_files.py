"""Run files: pid, stdout, stderr and exit, by which a run outlives the engine that started it.

Files, not pipes: the agent does not notice the death of its engine, and a daemon that keeps its
stdout open does not delay a step. The next engine reads from them whether the agent began, runs,
ended or was lost.

A full disk costs no finished answer: room for it, and for the status, is reserved before the agent
starts. The shell writes the status into that room first, then to ``exit``.
"""

import os
import re
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple

from uwf_git.agents.files import OutputFile, create_output, open_left_file, read_left_file
from uwf_git.agents.request import DEFAULT_MAX_LOG_BYTES, AgentRun
from uwf_git.errors import AgentFailed, Refused

PID = "pid"
EXIT = "exit"
RESERVED_EXIT = "exit.reserved"
STDOUT = "stdout"
STDERR = "stderr"

# The newline tells a status that was written whole from a file that was only just created.
_STATUS = re.compile(rb"([0-9]{1,3})\n")

_LONGEST_NUMBER = 32

# A longer answer needs a disk with room. A single byte reserves a whole block.
_RESERVED_BYTES = {RESERVED_EXIT: 1, STDOUT: 256 * 1024, STDERR: 64 * 1024}


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
    ended = _find_exit(Path(run_dir))
    if ended is not None:
        return RunFinished(ended.exit_code)
    if alive_is_held:
        return RunAlive()
    return RunNotStarted() if find_run_start_ms(run_dir) is None else RunLost()


def read_run_result(
    run_dir: str, *, max_output_bytes: int, max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
) -> AgentRun:
    """Return what a run left in *run_dir*, also if another engine started it.

    Raises:
        RunDirUnusable: the output is gone or cannot be read.
    """
    place = Path(run_dir)
    ended = _find_exit(place)
    try:
        begun_ns = (place / PID).stat().st_mtime_ns
        last = STDOUT if ended is None else ended.file
        ended_ns = max(begun_ns, (place / last).stat().st_mtime_ns)
        stdout = read_left_file(str(place / STDOUT), most_bytes=max_output_bytes + 1).content
        with closing(open_left_file(str(place / STDERR))) as log:
            stderr = log.read_tail(max_log_bytes)
    except OSError as error:
        raise RunDirUnusable(run_dir, f"{error.filename}: {error.strerror}") from error
    is_too_much = len(stdout) > max_output_bytes
    return AgentRun(
        outcome="lost" if ended is None else "too-much-output" if is_too_much else "exited",
        exit_code=None if ended is None else ended.exit_code,
        stdout=stdout[:max_output_bytes],
        stderr=stderr,
        started_ms=begun_ns // 1_000_000,
        duration_ms=(ended_ns - begun_ns) // 1_000_000,
    )


def find_run_start_ms(run_dir: str) -> int | None:
    """Return when the agent began, in milliseconds since 1970; None if it has not."""
    try:
        pid = os.stat(os.path.join(run_dir, PID))
    except FileNotFoundError:
        return None
    return pid.st_mtime_ns // 1_000_000 if pid.st_size else None


def read_run_group(run_dir: str) -> int | None:
    """Return the agent's process group as its shell wrote it; None if it is not there."""
    try:
        path = os.path.join(run_dir, PID)
        group = int(read_left_file(path, most_bytes=_LONGEST_NUMBER).content)
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
    """Create *run_dir* with empty outputs, and reserve room for an ordinary answer.

    Outputs of an engine that died before it started the agent are replaced.

    Raises:
        Refused: an agent began there. It may have finished work that must not be paid for
            twice; see ``read_run_state``.
        RunDirUnusable: it cannot be written, or the disk is full.
    """
    place = Path(run_dir)
    if any(_has_content(place / name) for name in (PID, EXIT)):
        raise Refused(
            f"an agent has already begun in {run_dir}",
            code="already-begun",
            hint="its result is still there; remove the directory to run the agent again",
            run_dir=run_dir,
        )
    files: dict[str, OutputFile] = {}
    with ExitStack() as on_failure:
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, length in _RESERVED_BYTES.items():
                path = str(place / name)
                files[name] = create_output(path, reserved_bytes=length)
                on_failure.callback(os.unlink, path)
                on_failure.callback(files[name].close)
        except OSError as error:
            raise RunDirUnusable(run_dir, error.strerror or str(error)) from error
        on_failure.pop_all()
    files[RESERVED_EXIT].close()
    return RunOutputs(place, files[STDOUT], files[STDERR])


def keep_exit_code(run_dir: Path, exit_code: int) -> None:
    """Write the exit status that a living engine knows, if the agent's shell could not."""
    reserved = run_dir / RESERVED_EXIT
    # The engine goes on with what it knows.
    with suppress(OSError):
        if _read_status(run_dir / EXIT) is not None:
            reserved.unlink(missing_ok=True)
            return
        if _read_status(reserved) is None:
            reserved.unlink(missing_ok=True)
            reserved.write_bytes(b"%d\n" % exit_code)
        reserved.replace(run_dir / EXIT)


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


class _Exit(NamedTuple):
    file: str
    exit_code: int


def _find_exit(place: Path) -> _Exit | None:
    """Return the exit status of a run, and the file that has it."""
    for name in (EXIT, RESERVED_EXIT):
        exit_code = _read_status(place / name)
        if exit_code is not None:
            return _Exit(name, exit_code)
    return None


def _read_status(path: Path) -> int | None:
    try:
        content = read_left_file(str(path), most_bytes=_LONGEST_NUMBER).content
    except OSError:
        return None
    status = _STATUS.fullmatch(content)
    return int(status[1]) if status else None
