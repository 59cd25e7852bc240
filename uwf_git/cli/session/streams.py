"""The three standard streams, and whether they get colours."""

import contextlib
import io
import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from uwf_git.errors import UwfError

# Whether a stream gets colours. Sources: https://no-color.org, https://force-color.org.


def wants_colour(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether a stream gets colours; NO_COLOR counts before FORCE_COLOR, as in Python."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


# The three standard streams: the only writes to standard output and error.
#
# No text fails to be written for its characters. After standard output is gone nothing is written
# to it, not even by the interpreter at its end.

_COLUMNS, _LINES = 80, 24
_STDOUT, _STDERR = 1, 2


class ReaderGone(Exception):
    """The reader of our standard output has left (``uwf thread list | head -1``)."""


class OutputFailed(UwfError):
    """Standard output could not be written."""

    code = "output-failed"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"standard output: {reason}",
            hint="the command is done; print its result again",
        )


def hold_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are open, and that writing any text works.

    If one of them were closed, the next opened file, perhaps a ref, would get its number, and
    prints would land in that file. git does the same (``sanitize_stdfds``).
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # open() takes the lowest free number, which is this one: those below it are open.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def stdout_is_utf8() -> bool:
    """Return True if standard output is UTF-8."""
    return _is_utf8(sys.stdout)


def stderr_is_utf8() -> bool:
    """Return True if standard error is UTF-8."""
    return _is_utf8(sys.stderr)


def _is_utf8(stream: object) -> bool:
    encoding: str = getattr(stream, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def wants_stderr_colour(environ: Mapping[str, str]) -> bool:
    """Return True if what people read on standard error may be coloured."""
    is_terminal = False
    with contextlib.suppress(ValueError):
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return wants_colour(environ, is_terminal=is_terminal)


class TerminalSize(NamedTuple):
    """How many columns and lines a terminal has."""

    columns: int
    lines: int


def terminal_size(descriptor: int) -> TerminalSize:
    """Return the size of a terminal; 80 columns and 24 lines where it does not say."""
    try:
        told = os.get_terminal_size(descriptor)
    except (OSError, ValueError):
        return TerminalSize(_COLUMNS, _LINES)
    # Some terminals report 0 if they do not know.
    return TerminalSize(told.columns or _COLUMNS, told.lines or _LINES)


def stdout_size() -> TerminalSize:
    """Return the size of the terminal that standard output is."""
    return terminal_size(_STDOUT)


def stderr_size() -> TerminalSize:
    """Return the size of the terminal that standard error is."""
    return terminal_size(_STDERR)


def stderr_columns() -> int:
    """Return the width of the terminal that standard error is."""
    return stderr_size().columns


def write_stdout(text: str) -> None:
    """Write *text* to standard output, and flush.

    Raises:
        ReaderGone: the reader has left.
        OutputFailed: the system refused, for example because the disk is full.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        _abandon_stdout()
        raise ReaderGone from error
    except OSError as error:
        _abandon_stdout()
        raise OutputFailed(error.strerror or type(error).__name__) from error


def write_stderr(text: str) -> None:
    """Write *text* to standard error if it is open; a lost remark must not end a step."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def wait_for_reader(seconds: float) -> None:
    """Wait, but notice that the reader of standard output leaves meanwhile."""
    import select  # noqa: PLC0415 (only who follows waits)

    poller = select.poll()
    try:
        poller.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError, AttributeError):
        # No file descriptor, as in a program that embeds this one.
        time.sleep(seconds)
        return
    if poller.poll(seconds * 1000):
        raise ReaderGone


def leave(status: int) -> NoReturn:
    """End the process, now.

    Finalizing the interpreter costs 15 ms, a tenth of a step, and the kernel frees all of it as
    well: everything durable is written already.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(status)


def _abandon_stdout() -> None:
    """Redirect the rest of the buffer to /dev/null, so that the final flush is silent.

    Source: "Note on SIGPIPE" in the documentation of Python's signal module.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
