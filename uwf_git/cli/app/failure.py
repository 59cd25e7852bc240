"""Failures: the message, code and exit status of any exception, and the logs of crashes.

A `UwfError` has them itself; this file has those of click's errors, system errors and bugs.
Describing an error never raises.
"""

import contextlib
import errno
import os
import platform
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from uwf_git.cli.session import (
    find_installed,
    installed_version,
    wants_stderr_colour,
    with_typed_store,
    write_stderr,
)
from uwf_git.errors import BadUsage, Failure, Problem, Refused, UwfError
from uwf_git.model.text import one_line, visible_line

INTERNAL = 70
INTERRUPTED = 130

_PERMISSION = (
    "see who may read and write it with `ls -ld`; another store is named with --repo or $UWF_REPO, "
    "another place for what uwf keeps in your home with $XDG_STATE_HOME"
)
_OPEN_FILES = "raise the limit of open files: `ulimit -n 4096`"
_SPACE = "free some space on the disk that is full (`df` shows it), then repeat the command"

_HINTS: Mapping[int, str] = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _PERMISSION),
    **dict.fromkeys((errno.EDQUOT, errno.ENOSPC), _SPACE),
    errno.EFBIG: "a file would be larger than this process may write: `ulimit -f unlimited`",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _OPEN_FILES),
}

# click appends hints to some messages; 8.2 and 8.5 spell them differently.
_ADVICE = re.compile(r"\.?\s+\(?(?=Did you mean|Choose from|Possible options)")


def describe_failure(error: BaseException, environ: Mapping[str, str]) -> Failure:
    """Describe *error* for the user; for a bug, write its trace to a log file first."""
    if isinstance(error, UwfError):
        return Failure(
            error.code, error.message, error.exit_status, error.hint, error.facts, error.lines
        )
    if isinstance(error, click.ClickException):
        return _of_click(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure("interrupted", "interrupted", INTERRUPTED)
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, MemoryError):
        hint = "end other programs, or raise the limit: `ulimit -v unlimited`"
        return Failure("out-of-memory", "there is not enough memory", Refused.exit_status, hint)
    message = f"internal error: {last_words(error)}"
    log = write_crash_log(error, environ)
    hint, facts = f"this is a bug; please report it with what is in {log}", {"log": log}
    if log is None:
        hint, facts = "please report this with the trace above", {"trace": trace_of(error)}
    return Failure("internal", message, INTERNAL, hint, facts)


def _of_click(error: click.ClickException) -> Failure:
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        # The dashes, which all options have, make none alike.
        near = get_close_matches(error.option_name[2:], [each[2:] for each in error.possibilities])
        possible = [f"--{each}" for each in near]
        error = click.NoSuchOption(error.option_name, possibilities=possible, ctx=error.ctx)
    message = error.format_message().strip().removesuffix(".")
    message = message.replace("valid integer range", "whole number").replace(
        "float range", "number"
    )
    # click writes sentences; our messages begin in lower case, unless with a name.
    if message[1:2].islower():
        message = message[0].lower() + message[1:]
    if not isinstance(error, click.UsageError):
        return Failure("refused", message, error.exit_code)
    message, *advice = _ADVICE.split(message, maxsplit=1)
    if isinstance(error, click.NoSuchOption) and error.option_name == "--json":
        advice = ["did you mean --format json"]
    if error.ctx is not None:
        advice.append(f"`{error.ctx.command_path} --help` shows how it is typed")
    hint = "; ".join(part[0].lower() + part[1:].rstrip("?)") for part in advice)
    return Failure(BadUsage.code, message, BadUsage.exit_status, hint or None)


def _of_system(error: OSError) -> Failure:
    reason = error.strerror or str(error) or type(error).__name__
    names = [_path(name) for name in (error.filename, error.filename2) if name is not None]
    facts: dict[str, Any] = {"errno": errno.errorcode.get(error.errno or 0)}
    if names:
        facts["path"] = names[0]
    message = ": ".join([" -> ".join(names), reason] if names else [reason])
    hint = _HINTS.get(error.errno or 0)
    return Failure("system-error", message, Refused.exit_status, hint, facts)


def _path(name: object) -> str:
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)


# Print a failure: lines for people, or one JSON object for programs.
#
# Printing never raises, whatever the facts hold, and nothing in them can move the cursor.

# The last lines of an agent's output or of a trace say most.
_MOST_LINES = 20


def tell(failure: Failure, *, as_json: bool, environ: Mapping[str, str] = {}) -> None:
    """Write *failure* to standard error, where *environ* allows it in colour."""
    failure = failure._replace(hint=failure.hint and with_typed_store(failure.hint))
    has_colour = wants_stderr_colour(environ)
    write_stderr(_as_json(failure) if as_json else _as_text(failure, has_colour=has_colour))


def _as_json(failure: Failure) -> str:
    from uwf_git.cli.output.screen import render_json  # noqa: PLC0415 (text needs no json)

    told = {"code": failure.code, "message": failure.message, "hint": failure.hint}
    facts = {name: _fact(fact) for name, fact in failure.facts.items() if name not in told}
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return render_json({"error": told | facts}, ascii_only=True, default=str)
    # A fact that JSON cannot hold must not hide the error.
    return render_json({"error": told}, ascii_only=True)


def _fact(fact: Any) -> Any:
    """Return problems as objects: JSON would write these tuples as arrays."""
    if not isinstance(fact, list | tuple):
        return fact
    return [each.as_document() if isinstance(each, Problem) else each for each in fact]


def _as_text(failure: Failure, *, has_colour: bool) -> str:
    title, *more = failure.lines or [failure.message]
    red, dim, end = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if has_colour else ("", "", "")
    lines = [f"{red}error:{end} {one_line(title)}", *(f"  {one_line(line)}" for line in more)]
    for name, fact in failure.facts.items():
        if name == "problems" and isinstance(fact, list | tuple):
            lines += _problem_lines(_fact(fact), failure.message)
        elif isinstance(fact, str) and "\n" in fact.strip():
            last = fact.strip("\n").split("\n")[-_MOST_LINES:]
            lines += [f"  {visible_line(line)}" for line in last]
    if failure.hint:
        lines.append(f"{dim}hint: {one_line(failure.hint)}{end}")
    return "\n".join(lines) + "\n"


def _problem_lines(problems: list[Any], message: str) -> Iterator[str]:
    for problem in problems:
        if not isinstance(problem, Mapping):
            yield f"  {one_line(str(problem))}"
            continue
        what = str(problem.get("message"))
        if len(problems) == 1 and what in message:
            return
        line = problem.get("line")
        where = f"line {line}" if line is not None else ""
        if file := problem.get("file"):
            where = f"{file}:{line}" if line is not None else str(file)
        places = [where, str(problem.get("path") or ""), what]
        yield "  " + ": ".join(one_line(place) for place in places if place)


# Words that people type for a command of another name: of other tools, and of older programs.

_UNSET = ("git --git-dir=STORE config --unset uwf.NAME",)
_STOP = ("uwf thread pause --now", "uwf thread kill")

_MEANT: Mapping[str, Mapping[str, Sequence[str]]] = {
    "uwf": {
        "add": ("uwf workflow put",),
        "cancel": ("uwf thread kill",),
        "exec": ("uwf thread step",),
        "list": ("uwf thread list", "uwf workflow list"),
        "ls": ("uwf thread list", "uwf workflow list"),
        "remove": ("uwf workflow remove", "uwf thread rm"),
        "show": ("uwf thread show", "uwf workflow show"),
        "status": ("uwf thread show", "uwf ps"),
        "stop": _STOP,
        "threads": ("uwf thread list",),
        "workflows": ("uwf workflow list",),
    },
    "uwf thread": {
        "cancel": ("uwf thread kill",),
        "exec": ("uwf thread step",),
        "ls": ("uwf thread list",),
        "remove": ("uwf thread rm",),
        "status": ("uwf thread show",),
        "stop": _STOP,
    },
    "uwf workflow": {
        "add": ("uwf workflow put",),
        "ls": ("uwf workflow list",),
        "rm": ("uwf workflow remove",),
    },
    "uwf config": {"ls": ("uwf config list",), **dict.fromkeys(("remove", "rm", "unset"), _UNSET)},
}

# Ids of threads are ULIDs, and begin with the time: with 0 for centuries. One may be shortened.
_THREAD_ID = re.compile(r"0[0-9A-HJKMNP-TV-Z]{1,25}", re.IGNORECASE)


def find_meant(
    group: str, given: str, *, names: Sequence[str], nested: Sequence[str]
) -> Sequence[str]:
    """Return the whole commands that *given* may mean in *group*, such as ``uwf thread``.

    *names* are those that the group has, *nested* those of its groups that are *given*.
    """
    if group == "uwf thread" and _THREAD_ID.fullmatch(given):
        return (f"uwf thread show {given}",)
    near = get_close_matches(given.lower(), names, n=3, cutoff=0.6)
    found = _MEANT.get(group, {}).get(given.lower())
    return found or [f"{group} {name}" for name in (*nested, *near)]


# Crash logs: the trace of a bug, in a file that the user can send.
#
# Nothing here raises, since that would hide the original error. The command line and the
# environment are left out, because prompts and secrets travel there.


def write_crash_log(error: BaseException, environ: Mapping[str, str]) -> str | None:
    """Write the trace of *error* and all versions to a new file; return its path, None if no place.

    Only the user may read it: a trace can quote what was being worked on.
    """
    with contextlib.suppress(Exception):
        versions = "".join(f"{name} {version}\n" for name, version in _versions())
        content = f"{versions}\n{trace_of(error)}".encode(errors="backslashreplace")
        name = f"crash-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-"
        for directory in _places(environ):
            with contextlib.suppress(OSError):
                return _write_new(directory, name, content)
    return None


def trace_of(error: BaseException) -> str:
    """Return the trace of *error* as Python writes it."""
    with contextlib.suppress(Exception):
        return "".join(traceback.format_exception(error))
    return type(error).__name__


def last_words(error: BaseException) -> str:
    """Return the type and message of *error* as one line."""
    with contextlib.suppress(Exception):
        return " ".join(traceback.format_exception_only(error)[-1].split())
    return type(error).__name__


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    # The XDG specification says that a relative path is to be ignored.
    state = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME", "")
    if os.path.isabs(state):
        yield Path(state, "uwf")
    elif os.path.isabs(home):
        yield Path(home, ".local", "state", "uwf")
    yield Path(tempfile.gettempdir())


def _write_new(directory: Path, name: str, content: bytes) -> str:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, path = tempfile.mkstemp(prefix=name, suffix=".log", dir=directory)
    with open(descriptor, "wb") as file:
        file.write(content)
    return path


def _versions() -> Iterator[tuple[str, str]]:
    yield "uwf", installed_version()
    yield "python", sys.version.replace("\n", " ")
    yield "platform", platform.platform()
    found = find_installed("uwf")
    for requirement in (found and found.requires) or ():
        if ";" not in requirement:
            # PEP 508: a name ends where its bounds begin.
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            yield name, installed_version(name)
