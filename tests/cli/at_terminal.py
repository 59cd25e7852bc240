"""A program at a terminal (pty) whose screen can be read, and whose size can be changed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from typing import Self

from cli.program import Uwf
from cli.terminal import Terminal
from commands.at_work import LONGEST_S


class AtTerminal:
    """`uwf` in a process of its own, at a terminal."""

    def __init__(
        self, uwf: Uwf, *words: str, columns: int = 80, lines: int = 24, **environ: str
    ) -> None:
        self.model = Terminal(columns, lines)
        self._ours, self._theirs = pty.openpty()
        self._set_size(columns, lines)
        self.modes = termios.tcgetattr(self._theirs)
        self._pending = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CONTROLLED, *words],
            cwd=uwf.place,
            env={
                **{name: each for name, each in os.environ.items() if name != "COLUMNS"},
                "UWF_REPO": str(uwf.session.repo),
                "TERM": "xterm",
                **environ,
            },
            start_new_session=True,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            # It ends its agents.
            self.process.terminate()
            self.process.wait(timeout=LONGEST_S)
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def text(self) -> str:
        """The screen as it is now."""
        self.read()
        return "\n".join(self.model.screen)

    @property
    def is_sane(self) -> bool:
        """Whether the terminal is as the program found it."""
        same_modes = termios.tcgetattr(self._theirs) == self.modes
        model = self.model
        return same_modes and model.has_cursor and model.has_wrap and not model.is_other

    def read(self) -> None:
        """Show what the program has written since."""
        while select.select([self._ours], [], [], 0)[0]:
            self._pending += os.read(self._ours, 65536)
        # Half a character, or half a sequence, is shown with the rest of it.
        text = self._pending.decode(errors="ignore")
        begun = text.rfind("\x1b", -12)
        if begun >= 0 and not any(each.isalpha() for each in text[begun:]):
            text = text[:begun]
        self._pending = self._pending[len(text.encode()) :]
        self.model.write(text.replace("\r\n", "\n"))

    def until(self, words: str) -> None:
        """Wait until *words* are on the screen."""
        self.until_seen(lambda screen: words in "\n".join(screen))

    def until_seen(self, check: Callable[[list[str]], bool]) -> None:
        """Wait until *check* says of the screen that it is as it should be."""
        end = time.monotonic() + LONGEST_S
        while not check(self.text.split("\n")):
            assert self.process.poll() is None, self.text
            assert time.monotonic() < end, self.text
            select.select([self._ours], [], [], 0.05)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, as a person drags the window."""
        self.read()
        self.model.resize(columns, lines)
        self._set_size(columns, lines)

    def type(self, text: str) -> None:
        """Type *text*."""
        os.write(self._ours, text.encode())

    def wait(self) -> int:
        """Wait for the end; return the exit status."""
        while self.process.poll() is None:
            select.select([self._ours], [], [], 0.05)
            self.read()
        self.read()
        return self.process.wait()

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


# The terminal has to be the controlling one, so that Ctrl-C and the new size arrive as signals.
_CONTROLLED = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("uwf_git", run_name="__main__", alter_sys=True)
"""
