"""Views that are drawn again: the last lines of a terminal, or the whole terminal."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from uwf_git.cli.output.table import display_width
from uwf_git.cli.session.caller import sigterm_as_interrupt
from uwf_git.cli.session.settings import (
    OutputFailed,
    ReaderGone,
    stderr_size,
    stdout_size,
    write_stderr,
    write_stdout,
)
from uwf_git.model.text import without_colours

# Live lines: the last lines of a terminal, which are rewritten while a command runs.
#
# They are redrawn only if they or the terminal's size changed, leave its first line alone, and
# are cleared before other output. The cursor is never hidden and no mode is changed: whatever
# ends the process, the terminal is as it was.

# ECMA-48: down some lines; erase this line; up one. Erasing to the end of the screen would move
# lines into the history of some terminals (tmux).
_DOWN, _ERASE, _UP = "\x1b[{}B", "\x1b[2K", "\x1b[1A"


class LiveLines:
    """Lines at the bottom of the terminal that standard error is."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._size = os.terminal_size((0, 0))

    def show(self, lines: Sequence[str]) -> None:
        """Show *lines*, as many as fit; each is safe to print, and fits the width."""
        size = stderr_size()
        told = _cut(lines, max(size.lines - 1, 1))
        if not told:
            self.clear()
        elif (told, size) != (self._shown, self._size):
            # The cursor rests at the left: what is typed there (^C) does not wrap.
            write_stderr(self._erase(size) + "\n".join(told) + "\r")
            self._shown, self._size = told, size

    def clear(self) -> None:
        """Clear the lines; the next output begins where they began."""
        if self._shown:
            write_stderr(self._erase(stderr_size()))
            self._shown = []

    def _erase(self, size: os.terminal_size) -> str:
        """Return what erases the shown lines: a terminal that became narrower has wrapped them."""
        widths = [display_width(without_colours(line)) for line in self._shown]
        rows = [max(1, -(-width // size.columns)) for width in widths] or [1]
        below = _DOWN.format(rows[-1] - 1) if rows[-1] > 1 else ""
        return "\r" + below + _ERASE + (_UP + _ERASE) * (sum(rows) - 1)


def _cut(lines: Sequence[str], most: int) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"   and {len(lines) - most + 1} more"]


# The whole terminal, for a view that is drawn again and again; afterwards all is as it was.
#
# The view has the alternate screen, so no line of the user's is lost, and nothing is left of it
# whatever the size was meanwhile. What is typed is not echoed, and not left to the shell. A view
# that is suspended (Ctrl-Z) gives the terminal back, and takes it again when it goes on.

# xterm's control sequences: the alternate screen; whether the cursor is shown; whether long lines
# wrap. ECMA-48: to the first place; erase to the end of the line; erase to the end of the screen.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _END_LINE, _END_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_LOCAL_MODES = 3


class FullScreen:
    """A terminal that is used as a whole."""

    def __init__(self) -> None:
        self._lines: Sequence[str] = ()
        self._size = os.terminal_size((0, 0))
        self._modes: list[Any] | None = None
        self._is_asked = False

    def show(self, lines: Sequence[str]) -> None:
        """Show *lines*, which are safe to print and fit; only changes are written."""
        size = stdout_size()
        shown = [f"{line}{_END_LINE}" for line in lines[: size.lines]]
        if (shown, size) != (self._lines, self._size):
            write_stdout(_HOME + "\n".join(shown) + _END_SCREEN)
            self._lines, self._size = shown, size

    def enter(self) -> None:
        """Take the terminal."""
        import termios  # noqa: PLC0415 (not on every system)

        self._lines = ()
        with suppress(termios.error, OSError, ValueError):
            self._modes = termios.tcgetattr(sys.stdout.fileno())
            quiet = [*self._modes]
            quiet[_LOCAL_MODES] &= ~termios.ECHO
            termios.tcsetattr(sys.stdout.fileno(), termios.TCSADRAIN, quiet)
        write_stdout(_ENTER)

    def leave(self) -> None:
        """Give it back, as far as it is there."""
        import termios  # noqa: PLC0415 (see above)

        with suppress(ReaderGone, OutputFailed):
            write_stdout(_LEAVE)
        if self._modes is not None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdout.fileno(), termios.TCSAFLUSH, self._modes)
            self._modes = None

    def rest(self, seconds: float) -> None:
        """Wait; if the user suspends the program meanwhile, stop here until it goes on."""
        time.sleep(seconds)
        if self._is_asked:
            self._is_asked = False
            self.leave()
            os.kill(os.getpid(), signal.SIGSTOP)
            # Goes on here.
            self.enter()

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Note that the program is to be suspended: the signal may have come within a write."""
        self._is_asked = True


@contextmanager
def full_screen() -> Iterator[FullScreen]:
    """Take the terminal that standard output is; SIGTERM and SIGHUP raise KeyboardInterrupt."""
    screen = FullScreen()
    suspends = signal.getsignal(signal.SIGTSTP)
    with sigterm_as_interrupt():
        try:
            screen.enter()
            if suspends is signal.SIG_DFL:
                signal.signal(signal.SIGTSTP, screen.ask)
            yield screen
        finally:
            # A second Ctrl-C must not cut this short.
            interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)
            if suspends is signal.SIG_DFL:
                signal.signal(signal.SIGTSTP, suspends)
            screen.leave()
            signal.signal(signal.SIGINT, interrupts)
