"""The whole terminal, for a view that is drawn again and again; afterwards all is as it was.

The view has the alternate screen, so no line of the user's is lost, and nothing is left of it
whatever the size was meanwhile. What is typed is not echoed, and not left to the shell. A view that
is suspended (Ctrl-Z) gives the terminal back, and takes it again when it goes on.
"""

import os
import signal
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from uwf_git.cli.session.interrupt_signals import sigterm_as_interrupt
from uwf_git.cli.session.streams import (
    OutputFailed,
    ReaderGone,
    TerminalSize,
    stdout_size,
    write_stdout,
)

# xterm's control sequences: the alternate screen; whether the cursor is shown; whether long lines
# wrap. ECMA-48: to the first place; erase to the end of the line; erase to the end of the screen.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _END_LINE, _END_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_LOCAL_MODES = 3


class FullScreen:
    """A terminal that is used as a whole."""

    def __init__(self) -> None:
        self._lines: Sequence[str] = ()
        self._size = TerminalSize(0, 0)
        self._modes: list[Any] | None = None
        self._is_asked = False

    def show(self, lines: Sequence[str]) -> None:
        """Show *lines*, which are safe to print and fit; nothing is written if none has changed."""
        size = stdout_size()
        shown = [f"{line}{_END_LINE}" for line in lines[: size.lines]]
        if (shown, size) != (self._lines, self._size):
            write_stdout(_HOME + "\n".join(shown) + _END_SCREEN)
            self._lines, self._size = shown, size

    def enter(self) -> None:
        """Take the terminal."""
        self._lines = ()
        with suppress(termios.error, OSError, ValueError):
            self._modes = termios.tcgetattr(sys.stdout.fileno())
            quiet = [*self._modes]
            quiet[_LOCAL_MODES] &= ~termios.ECHO
            termios.tcsetattr(sys.stdout.fileno(), termios.TCSADRAIN, quiet)
        write_stdout(_ENTER)

    def leave(self) -> None:
        """Give it back, as far as it is there."""
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
