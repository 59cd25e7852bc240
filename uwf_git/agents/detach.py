"""Detaching: a program that outlives the shell from which it was started.

Owns: what ties a process to who started it, and cutting it. Knows nothing of: what it does.
Always true: it has a session of its own, so that neither Ctrl-C nor the end of the terminal
reaches it; it reads nothing, and all that it says lands in its log, which is only added to.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.errors import Refused


class NotDetached(Refused):
    """The program could not be started, or its log not be written."""

    code = "not-detached"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(
            f"nothing can be started in the background: {what}: {problem}",
            hint="check that there is room, and that the store can be written",
            path=what,
        )


# The numbers of those that nobody looks at any more. One that has ended stays a zombie, and keeps
# its number, until we ask for it.
_LET_GO: list[int] = []


class Detached:
    """A program that was started; whoever started it may look whether it has ended."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child
        self.pid = child.pid

    def find_status(self) -> int | None:
        """Give its exit status (negative: the signal that ended it); None while it lives."""
        return self._child.poll()

    def let_go(self) -> None:
        """Look no more; if we live on, it is taken leave of when the next one is started."""
        if self._child.poll() is None:
            _LET_GO.append(self.pid)
            # Python would warn of a child that nobody waited for.
            self._child.returncode = 0


class DetachRequest(NamedTuple):
    """What is to be started."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    workdir: str
    log: str
    """The file that gets all that it says; it is made if it is not there."""


def start_detached(request: DetachRequest) -> Detached:
    """Start a program that goes on when we end.

    Raises:
        NotDetached: the system refused.
    """
    _take_leave()
    try:
        os.makedirs(os.path.dirname(request.log), exist_ok=True)
        # What agents print is for whoever may see their work, and nobody else on this machine.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        log = os.open(request.log, flags, 0o600)
    except OSError as error:
        raise NotDetached(request.log, error.strerror or str(error)) from error
    try:
        return Detached(_spawn(request, log))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else None
        raise NotDetached(request.argv[0], problem or str(error)) from error
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


def _take_leave() -> None:
    """Let the system forget those that have ended since they were let go."""
    for pid in tuple(_LET_GO):
        try:
            has_ended = os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            # Somebody waits for all of our children, or the kernel does.
            has_ended = True
        if has_ended:
            # Another thread may do the same.
            with suppress(ValueError):
                _LET_GO.remove(pid)
