"""The three standard streams, as a well-behaved filter treats them.

Owns: the only writes to standard output and error. Knows nothing of: documents, formats.
Always true: whatever text it is, writing it does not fail for its characters; once standard
output is gone nothing is written to it, not even by the interpreter when it ends.
"""

import contextlib
import io
import os
import sys
from typing import NoReturn

from uwf_git.errors import UwfError


class ReaderGone(Exception):
    """Whoever read our standard output has left (``uwf thread list | head -1``)."""


class OutputFailed(UwfError):
    """Standard output would not take what the command had to say."""

    code = "output-failed"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"standard output: {reason}",
            hint="what the command did is done; ask for its result again",
        )


def hold_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are open, and that writing any text works.

    Started with one of them closed, the next file opened would get its number, and prints would
    land in that file: perhaps a ref. git does the same (``sanitize_stdfds``).
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is taken, which is this one: those below it are open.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def stdout_is_utf8() -> bool:
    """Tell whether standard output takes every character as UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def write_stdout(text: str) -> None:
    """Write *text* to standard output, now.

    Raises:
        ReaderGone: nobody reads it any more.
        OutputFailed: the disk is full, or what else the system said.
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
    """Write *text* to standard error if anybody is there; a lost remark must not end a step."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def leave(status: int) -> NoReturn:
    """End the process, now.

    Taking the interpreter apart costs 15 ms, a tenth of a step, and there is nothing in it that
    the kernel does not free as well: everything that must last was written when it was done.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(status)


def _abandon_stdout() -> None:
    """Send what is left in the buffer nowhere, so that the interpreter's own flush is silent.

    Source: "Note on SIGPIPE" in the documentation of Python's signal module.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
