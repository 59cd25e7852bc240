"""The terminal of a person who is asked, also for an agent that was started without one.

An agent runs in a session of its own with stdin from /dev/null, so it has no /dev/tty. The
engine passes the device's name in UWF_TTY. As it is not the session's terminal, job control
does not stop readers, and Ctrl-C goes to the engine, which ends the agent. The terminal's
settings are never changed, shown text cannot move the cursor, and a lock keeps two agents from
asking at once.
"""

import os
import re
from collections.abc import Callable, Mapping

from uwf_git.errors import Refused

VARIABLE = "UWF_TTY"

_OWN = "/dev/tty"
_LONGEST_LINE = 64 * 1024
_MOST_ENDS = 3

# C0 without tab and line feed, DEL, C1, and bidirectional controls.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class NoTerminal(Refused):
    code = "no-terminal"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"cannot ask a person: {problem}",
            hint="call `uwf thread step` or `uwf run` yourself, in the foreground of a terminal",
        )


def _terminal_closed() -> Refused:
    return Refused("no answer: the terminal was closed", code="left", kind="interrupted")


def visible(text: str) -> str:
    """Return *text* with control characters other than tab and line feed as U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


class Terminal:
    """An open terminal, locked against other agents until it is closed."""

    def __init__(self, environ: Mapping[str, str], *, note: Callable[[str], object]) -> None:
        """Open and lock the terminal of UWF_TTY, else our own; *note* tells of a wait for it."""
        path = environ.get(VARIABLE) or _OWN
        try:
            self._file = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise NoTerminal(f"there is no terminal ({path}: {problem})") from error
        if not os.isatty(self._file):
            os.close(self._file)
            raise NoTerminal(f"{path} is not a terminal")
        self._ends = 0
        self._await_turn(note)

    def _await_turn(self, note: Callable[[str], object]) -> None:
        # Windows has no fcntl, and no such terminals, so it never comes here.
        import fcntl  # noqa: PLC0415 (see above)

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("another agent is asking at this terminal; waiting")
            fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def descriptor(self) -> int:
        return self._file

    def close(self) -> None:
        os.close(self._file)

    def say(self, text: str) -> None:
        left = visible(text).encode(errors="replace")
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise _terminal_closed() from error

    def read_line(self, prompt: str = "> ") -> str | None:
        """Return a line without its line feed; None for Ctrl-D."""
        self.say(prompt)
        try:
            line = os.read(self._file, _LONGEST_LINE)
        except OSError as error:
            raise _terminal_closed() from error
        if line:
            self._ends = 0
            return line.decode(errors="replace").rstrip("\r\n")
        # A closed terminal returns end of file for ever; a person types Ctrl-D once or twice.
        self._ends += 1
        if self._ends > _MOST_ENDS:
            raise _terminal_closed()
        self.say("\n")
        return None
