"""Start a program that outlives us and our terminal.

It gets a session of its own, no stdin, and a log file to which its output is appended.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.errors import Refused


def _not_detached(what: str, problem: str) -> Refused:
    return Refused(
        f"cannot start in the background: {what}: {problem}",
        code="not-detached",
        hint="check free disk space, and the permissions of the store",
        path=what,
    )


# Pids of children that were let go. An ended one stays a zombie until it is reaped.
_LET_GO: list[int] = []


class Detached:
    """A detached program."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child
        self.pid = child.pid

    def find_status(self) -> int | None:
        """Return its exit status (negative: the signal that ended it); None while it runs."""
        return self._child.poll()

    def let_go(self) -> None:
        """Stop watching it; if it ends before us, the next ``spawn_detached`` reaps it."""
        if self._child.poll() is None:
            _LET_GO.append(self.pid)
            # Python warns of a child that was not waited for.
            self._child.returncode = 0


class DetachRequest(NamedTuple):
    """A program to start detached."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    workdir: str
    log: str
    """The file for its stdout and stderr; it is created if missing."""


def spawn_detached(request: DetachRequest) -> Detached:
    """Start a program that goes on when we end.

    Raises:
        Refused
    """
    _reap_ended()
    try:
        os.makedirs(os.path.dirname(request.log), exist_ok=True)
        # Readable by this user only: agents may print confidential work.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        log = os.open(request.log, flags, 0o600)
    except OSError as error:
        raise _not_detached(request.log, error.strerror or str(error)) from error
    try:
        return Detached(_spawn(request, log))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else None
        raise _not_detached(request.argv[0], problem or str(error)) from error
    finally:
        os.close(log)


def _spawn(request: DetachRequest, log: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        request.argv,
        env=dict(request.environment),
        cwd=request.workdir,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _reap_ended() -> None:
    """Reap the children that have ended since they were let go."""
    for pid in tuple(_LET_GO):
        try:
            has_ended = os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            # It was reaped elsewhere, or the process ignores SIGCHLD.
            has_ended = True
        if has_ended:
            # Another Python thread may have removed it.
            with suppress(ValueError):
                _LET_GO.remove(pid)
