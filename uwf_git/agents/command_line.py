"""Agent commands, what an agent's process is given and what it left.

Commands are split, the argv of their protocol is built, and the program is found. Nothing is
expanded and no shell is involved. The program is looked up before the spawn, since exit status 127
could also be the agent's own.
"""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from uwf_git.errors import AgentFailed, Refused

Protocol = Literal["positional", "flags"]


class BadCommand(Refused):
    """The text is not a command line."""

    code = "bad-command"

    def __init__(self, command: str, problem: str) -> None:
        super().__init__(
            f"{command!r:.200} is no agent command: {problem}",
            hint="write it as you would type it in a shell, for example: uwf-shell 'make test'",
            command=command,
            problem=problem,
        )


class ProgramMissing(AgentFailed):
    code = "program-missing"

    def __init__(self, program: str, problem: str, *, hint: str) -> None:
        super().__init__(
            f"agent command {program!r:.200} {problem}", hint=hint, program=program, problem=problem
        )


def split_command(command: str) -> tuple[str, ...]:
    """Split *command* into words as a POSIX shell does, without expansion, or raise BadCommand."""
    if "\0" in command:
        raise BadCommand(command, "it holds a NUL character")
    try:
        os.fsencode(command)
        words = tuple(shlex.split(command))
    except UnicodeEncodeError:
        raise BadCommand(command, "it holds a lone surrogate") from None
    except ValueError as error:
        raise BadCommand(command, str(error).lower()) from None
    if not words or not words[0]:
        raise BadCommand(command, "it is empty")
    return words


def build_argv(command: str, *, protocol: Protocol, thread: str, role: str) -> tuple[str, ...]:
    """Return the words of *command* and what its protocol adds: thread, or thread and role."""
    words = split_command(command)
    if protocol == "flags":
        return (*words, "-t", thread, "-r", role)
    return (*words, thread)


def build_search_path(path: str) -> str:
    """Return the PATH *path* with the directory of the running Python at its end.

    So agents that were installed with uwf are found without activating its virtual environment.
    """
    own = str(Path(sys.executable).parent)
    entries = path.split(os.pathsep) if path else []
    return path if own in entries else os.pathsep.join([*entries, own])


def resolve_program(program: str, *, path: str, workdir: str) -> str:
    """Return the absolute path of *program*, as exec would find it from *workdir* on *path*."""
    place = Path(workdir).absolute()
    if "/" in program:
        found = str(place / program)
        _check_executable(program, found)
    else:
        import shutil  # noqa: PLC0415 (with bz2 and lzma behind it; most commands only name agents)

        # Empty and relative entries are relative to the agent's work directory.
        entries = [str(place / entry) for entry in path.split(os.pathsep)]
        found = shutil.which(program, path=os.pathsep.join(entries)) or ""
        if not found:
            raise ProgramMissing(program, "is not on the PATH", hint=_missing_hint(program))
    _check_interpreter(program, found)
    return found


def _check_executable(program: str, file: str) -> None:
    if Path(file).is_dir():
        raise ProgramMissing(program, "is a directory", hint="name the program in it")
    if not Path(file).exists():
        raise ProgramMissing(program, "does not exist", hint=_missing_hint(program, file))
    if not os.access(file, os.X_OK):
        raise ProgramMissing(
            program, "may not be executed", hint=f"chmod +x {shlex.quote(program)}"
        )


def _missing_hint(program: str, file: str = "") -> str:
    if "=" in program or program.startswith("~"):
        return (
            "agent commands are not run by a shell, so ~ and NAME=value do not work in them; "
            "write the whole path, or start the command with `env NAME=value`"
        )
    if "/" in program:
        return f"there is no file {file}: a path is looked for in the work directory"
    return (
        f"check with `command -v {shlex.quote(program)}` where uwf runs: "
        "a login shell and a service often have different PATHs"
    )


def _check_interpreter(program: str, file: str) -> None:
    """Check that a script's interpreter exists; exec would report the script as missing."""
    try:
        with Path(file).open("rb") as script:
            first = script.readline(256)
    except OSError:
        return  # Executable but not readable, so it is not a script.
    # As the kernel does, for which a carriage return is a part of the name.
    words = first[2:].strip(b" \t\n").replace(b"\t", b" ").split(b" ")
    interpreter = os.fsdecode(words[0]) if first.startswith(b"#!") else ""
    if interpreter.startswith("/") and not Path(interpreter).exists():
        raise ProgramMissing(
            program,
            f"is a script for {interpreter!r}, which does not exist",
            hint=f"check with `head -1 {shlex.quote(file)}`; install it, or end the lines with \\n",
        )


@lru_cache(maxsize=100)
def agent_name(command: str) -> str:
    """Return the base name of the program of *command*, such as ``uwf-shell``."""
    try:
        program = split_command(command)[0]
    except BadCommand:
        return "unknown"
    return program.rpartition("/")[2] or "unknown"


RunOutcome = Literal[
    "exited", "timed-out", "too-much-output", "interrupted", "lost", "dismissed"
]  # fmt: skip

DEFAULT_MAX_OUTPUT_BYTES = 16 * 1024 * 1024
DEFAULT_MAX_LOG_BYTES = 64 * 1024
DEFAULT_GRACE_S = 5.0


OnOutput = Callable[[bytes], None]
"""Receives a piece of output, which may end in the middle of a character."""


OnTick = Callable[[], None]


class Listener(NamedTuple):
    """Callbacks that receive an agent's output while it runs."""

    on_stderr: OnOutput | None = None

    on_stdout: OnOutput | None = None
    """Its reply, piece by piece."""

    on_tick: OnTick = lambda: None
    """Called some times a second, with or without output."""

    is_done: Callable[[], bool] = lambda: False
    """Called as often: the agent has done its part, and is ended if it is still there."""


class AgentRequest(NamedTuple):
    """All that an agent's process is given; nothing else reaches it."""

    argv: tuple[str, ...]
    """The program as ``resolve_program`` found it, then its arguments."""

    environment: Mapping[str, str]
    """The whole environment: nothing is inherited. A dash as /bin/sh drops names like ``a.b``."""

    workdir: str

    run_dir: str
    """An absolute path where no agent began yet; stdout, stderr, pid and exit are created there."""

    timeout_s: float | None = None
    """None: no limit."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The limit for stdout, and for stderr."""

    max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
    """How much of the end of stderr is returned."""

    kept_fds: tuple[int, ...] = ()
    """Descriptors that the agent inherits, such as the lock that it holds while it lives."""

    grace_s: float = DEFAULT_GRACE_S
    """Time between SIGTERM and SIGKILL."""

    is_all_log: bool = False
    """What it prints on stdout goes into the log too, in order; no answer is expected."""


class AgentRun(NamedTuple):
    outcome: RunOutcome
    """``exited`` says nothing about the answer; ``lost``: no status; ``dismissed``: work done."""

    exit_code: int | None
    """128 + n if signal n ended the agent; None if we killed the agent."""

    stdout: bytes

    stderr: bytes
    """The end of the log, where the reasons are."""

    started_ms: int
    """Milliseconds since 1970."""

    duration_ms: int
    left_running: tuple[str, ...] = ()
    """What an agent that ended well has started and not ended: ``sleep (4711)``."""
