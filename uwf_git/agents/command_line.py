"""Agent commands: split them, build the argv of their protocol, and find the program.

Nothing is expanded and no shell is involved. The program is looked up before the spawn, since exit
status 127 could also be the agent's own.
"""

import os
import shlex
import sys
from functools import lru_cache
from pathlib import Path
from typing import Literal

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
    if "/" in program:
        found = str(Path(workdir) / program)
        _check_executable(program, found)
    else:
        import shutil  # noqa: PLC0415 (with bz2 and lzma behind it; most commands only name agents)

        # Empty and relative entries are relative to the agent's work directory.
        entries = [str(Path(workdir) / entry) for entry in path.split(os.pathsep)]
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
    words = first[2:].split(maxsplit=1) if first.startswith(b"#!") else []
    interpreter = os.fsdecode(words[0]) if words else ""
    if interpreter.startswith("/") and not Path(interpreter).exists():
        raise ProgramMissing(
            program,
            f"is a script for {interpreter}, which does not exist",
            hint=f"check with `head -1 {shlex.quote(file)}`, and install the interpreter",
        )


@lru_cache(maxsize=100)
def agent_name(command: str) -> str:
    """Return the base name of the program of *command*, such as ``uwf-shell``."""
    try:
        program = split_command(command)[0]
    except BadCommand:
        return "unknown"
    return program.rpartition("/")[2] or "unknown"
