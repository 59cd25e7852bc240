"""The terminal: where somebody can be asked, also from an agent that was started without one.

Owns: finding it, and reading lines.
Knows nothing of: what is asked.
Always true: its settings are never changed, so that it is as it was however we end; text of others
that is shown on it cannot move the cursor. Two agents never ask at the same time.
Why: an agent runs in a session of its own, with stdin from /dev/null. Such a session has no
/dev/tty. The device itself can still be opened by its name, which the engine tells in UWF_TTY;
since it is not the session's own terminal, no job control stops its readers, and Ctrl-C goes to
the engine, which ends the agent.
"""

import os
import re
from collections.abc import Callable, Mapping

from uwf_git.errors import Refused

VARIABLE = "UWF_TTY"

_OWN = "/dev/tty"
_LONGEST_LINE = 64 * 1024
_MOST_ENDS = 3

# C0 but for tab and line feed, DEL, C1; the marks that turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class NoTerminal(Refused):
    """There is nowhere to ask anybody."""

    code = "no-terminal"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"nobody can be asked: {problem}",
            hint="call `uwf thread step` or `uwf run` yourself, in the foreground of a terminal",
        )


class Left(Refused):
    """Whoever was asked has gone."""

    code = "left"

    def __init__(self) -> None:
        super().__init__("nobody answered: the terminal was closed", kind="interrupted")


def visible(text: str) -> str:
    """Give *text* with everything but letters, tabs and line feeds made visible."""
    return _CONTROLS.sub("\ufffd", text)


class Terminal:
    """A terminal that we hold until it is closed."""

    def __init__(self, environ: Mapping[str, str], *, note: Callable[[str], object]) -> None:
        """Open the terminal that UWF_TTY names, else our own, and wait until nobody else asks.

        *note* is told if there is somebody to wait for.

        Raises:
            NoTerminal: there is none.
        """
        path = environ.get(VARIABLE) or _OWN
        try:
            self._file = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise NoTerminal(f"there is no terminal ({path}: {problem})") from error
        if not os.isatty(self._file):
            os.close(self._file)
            raise NoTerminal(f"{path} is no terminal")
        self._ends = 0
        self._await_turn(note)

    def _await_turn(self, note: Callable[[str], object]) -> None:
        # Windows has no fcntl, and no terminals of this kind: we do not come here.
        import fcntl  # noqa: PLC0415 (see above)

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("somebody else asks at this terminal; waiting")
            fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def descriptor(self) -> int:
        """The open terminal, for a program that is to use it."""
        return self._file

    def close(self) -> None:
        """Let others ask."""
        os.close(self._file)

    def say(self, text: str) -> None:
        """Show *text*, made visible.

        Raises:
            Left: the terminal is gone.
        """
        left = visible(text).encode(errors="replace")
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise Left from error

    def read_line(self, prompt: str = "> ") -> str | None:
        """Read a line, without its end; None for Ctrl-D.

        Raises:
            Left: the terminal is gone.
        """
        self.say(prompt)
        try:
            line = os.read(self._file, _LONGEST_LINE)
        except OSError as error:
            raise Left from error
        if line:
            self._ends = 0
            return line.decode(errors="replace").rstrip("\r\n")
        # A terminal that was closed ends every line at once; a person does so once or twice.
        self._ends += 1
        if self._ends > _MOST_ENDS:
            raise Left
        self.say("\n")
        return None
