"""Failures: the message, code and exit status of any exception.

A `UwfError` has them itself; this file has those of click's errors, system errors and bugs.
Describing an error never raises.
"""

import errno
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from uwf_git.errors import BadUsage, Refused, UwfError

INTERNAL = 70
INTERRUPTED = 130

_PERMISSION = (
    "see who may read and write it with `ls -ld`; another store is named with --repo or $UWF_REPO"
)
_OPEN_FILES = "raise the limit of open files: `ulimit -n 4096`"
_SPACE = "free some space there, then repeat the command"

_HINTS: Mapping[int, str] = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: _PERMISSION,
    errno.EDQUOT: _SPACE,
    errno.ENOSPC: _SPACE,
    errno.EMFILE: _OPEN_FILES,
    errno.ENFILE: _OPEN_FILES,
}

_NO_FACTS: Mapping[str, Any] = MappingProxyType({})

# click appends hints to some messages; 8.1 and 8.5 spell them differently.
_ADVICE = re.compile(r"\.?\s+\(?(?=Did you mean|Choose from|Possible options)")


class Failure(NamedTuple):
    """The message that the user gets."""

    code: str
    message: str
    exit_status: int
    hint: str | None = None
    facts: Mapping[str, Any] = _NO_FACTS
    lines: Sequence[str] = ()
    """What people read in place of the message, if any."""


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
        return Failure(
            "out-of-memory",
            "there is not enough memory",
            Refused.exit_status,
            "end other programs, or raise the limit: `ulimit -v unlimited`",
        )
    return _of_bug(error, environ)


def _of_click(error: click.ClickException) -> Failure:
    message = error.format_message().strip().removesuffix(".")
    # click writes sentences; our messages begin in lower case, unless with a name.
    if message[1:2].islower():
        message = message[0].lower() + message[1:]
    if not isinstance(error, click.UsageError):
        return Failure("refused", message, error.exit_code)
    message, *advice = _ADVICE.split(message, maxsplit=1)
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
    return Failure(
        "system-error",
        ": ".join([" -> ".join(names), reason] if names else [reason]),
        Refused.exit_status,
        _HINTS.get(error.errno or 0),
        facts,
    )


def _path(name: object) -> str:
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)


def _of_bug(error: BaseException, environ: Mapping[str, str]) -> Failure:
    from uwf_git.cli.app.crash_log import (  # noqa: PLC0415 (bugs only; traceback costs 5 ms)
        last_words,
        trace_of,
        write_crash_log,
    )

    message = f"internal error: {last_words(error)}"
    log = write_crash_log(error, environ)
    if log is None:
        hint = "please report this with the trace above"
        return Failure("internal", message, INTERNAL, hint, {"trace": trace_of(error)})
    hint = f"this is a bug; please report it with what is in {log}"
    return Failure("internal", message, INTERNAL, hint, {"log": log})
