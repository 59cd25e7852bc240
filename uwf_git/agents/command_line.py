"""Command lines: from the words of an agent command to an argv that can be started.

Owns: splitting, the two calling conventions, and finding the program before it is started.
Knows nothing of: processes, threads beyond their id, what an agent answers.
Always true: what is returned can be handed to exec as it is: nothing is expanded, no shell sees
it. A program is looked for before the spawn, since the exit status 127 of a missing one is no
different from the agent's own.
"""

import os
import shlex
import shutil
import sys
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
    """The program of an agent command cannot be started on this machine."""

    code = "program-missing"

    def __init__(self, program: str, problem: str, *, hint: str) -> None:
        super().__init__(
            f"agent command {program!r:.200} {problem}", hint=hint, program=program, problem=problem
        )


def split_command(command: str) -> tuple[str, ...]:
    """Split *command* into words as a POSIX shell does, without expanding anything.

    Raises:
        BadCommand: a quote is left open, there is no word, or a word that no program can be
            given (one with a NUL, or with half of a surrogate pair).
    """
    if "\0" in command:
        raise BadCommand(command, "it holds a NUL character")
    try:
        os.fsencode(command)
        words = tuple(shlex.split(command))
    except UnicodeEncodeError:
        raise BadCommand(command, "it holds half of a surrogate pair") from None
    except ValueError as error:
        raise BadCommand(command, str(error).lower()) from None
    if not words or not words[0]:
        raise BadCommand(command, "it is empty")
    return words


def build_argv(command: str, *, protocol: Protocol, thread: str, role: str) -> tuple[str, ...]:
    """Add to *command* what its protocol says: the thread, or ``-t <thread> -r <role>``.

    Raises:
        BadCommand: as ``split_command``.
    """
    words = split_command(command)
    if protocol == "flags":
        return (*words, "-t", thread, "-r", role)
    return (*words, thread)


def build_search_path(path: str) -> str:
    """Append to *path*, a PATH, the directory of the running Python.

    Agents that were installed with uwf are then found although nobody activated its virtual
    environment. The agent should inherit this PATH, so that it finds the same programs.
    """
    own = str(Path(sys.executable).parent)
    entries = path.split(os.pathsep) if path else []
    return path if own in entries else os.pathsep.join([*entries, own])


def resolve_program(program: str, *, path: str, workdir: str) -> str:
    """Find the file that *program* names, as exec would from *workdir* with PATH *path*.

    The result is absolute, and is what exec should be given.

    Raises:
        ProgramMissing: there is no such program, or it cannot be executed.
    """
    if "/" in program:
        found = str(Path(workdir) / program)
        _check_executable(program, found)
    else:
        # An empty or relative entry means: seen from the directory in which the agent runs.
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
        raise ProgramMissing(program, "does not exist", hint=_missing_hint(program))
    if not os.access(file, os.X_OK):
        raise ProgramMissing(
            program, "may not be executed", hint=f"chmod +x {shlex.quote(program)}"
        )


def _missing_hint(program: str) -> str:
    if "=" in program or program.startswith("~"):
        return (
            "no shell reads agent commands, so ~ and NAME=value mean nothing in them; "
            "write the whole path, or start the command with `env NAME=value`"
        )
    if "/" in program:
        return f"check with `ls -l {shlex.quote(program)}`; it is looked for in the work directory"
    return (
        f"check with `command -v {shlex.quote(program)}` where uwf runs: "
        "a login shell and a service often have different PATHs"
    )


def _check_interpreter(program: str, file: str) -> None:
    """Refuse a script whose interpreter is absent: the system reports the script as missing."""
    try:
        with Path(file).open("rb") as script:
            first = script.readline(256)
    except OSError:
        return  # A program that may be run but not read is no script.
    words = first[2:].split(maxsplit=1) if first.startswith(b"#!") else []
    interpreter = os.fsdecode(words[0]) if words else ""
    if interpreter.startswith("/") and not Path(interpreter).exists():
        raise ProgramMissing(
            program,
            f"is a script for {interpreter}, which is not there",
            hint=f"check with `head -1 {shlex.quote(file)}`, and install the interpreter",
        )
