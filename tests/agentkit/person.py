"""A person at a real terminal (pty), with a program in its foreground."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The program gets the terminal as its own, as a shell's jobs do.
_TRAMPOLINE = (
    "import fcntl, os, sys, termios;"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
_PATIENCE_S = 30.0


class Person:
    """Somebody with a program in front of them: ``python ARGV`` in *cwd*."""

    def __init__(self, *argv: str, cwd: Path, **environ: str) -> None:
        self._terminal, theirs = pty.openpty()
        self.name = os.ttyname(theirs)
        self.seen = ""
        try:
            self.program = subprocess.Popen(
                [sys.executable, "-c", _TRAMPOLINE, *argv],
                cwd=cwd,
                env=os.environ | environ,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def wait_for(self, text: str) -> str:
        """Read on until *text* is shown, and return what was shown since the last time."""
        until = time.monotonic() + _PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < until, f"{text!r} was not shown, but: {self.seen}"
            if not self._read():
                raise AssertionError(f"{text!r} was not shown, but: {self.seen}")
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def type(self, text: str) -> None:
        """Type *text* as it is; a line ends with a line feed."""
        os.write(self._terminal, text.encode())

    def answer(self, question: str, text: str) -> str:
        """Wait for *question*, and answer it with a line."""
        shown = self.wait_for(question)
        self.type(f"{text}\n")
        return shown

    def answer_all(self, *talk: str) -> None:
        """Answer one question after the other: question, answer, question, answer, …."""
        for question, text in zip(talk[::2], talk[1::2], strict=True):
            self.answer(question, text)

    def end(self) -> tuple[int, str]:
        """Wait for the program's end; return its status, and what was shown until then."""
        until = time.monotonic() + _PATIENCE_S
        while self.program.poll() is None and time.monotonic() < until:
            self._read()
        assert self.program.poll() is not None, self.seen
        while self._read(wait_s=0):
            pass
        return self.program.returncode, self.seen

    def leave(self) -> None:
        """Close the terminal, and end the program if it still runs."""
        os.close(self._terminal)
        if self.program.poll() is None:
            self.program.send_signal(signal.SIGKILL)
        self.program.wait()

    def _read(self, *, wait_s: float = 0.05) -> bool:
        readable, _, _ = select.select([self._terminal], [], [], wait_s)
        if not readable:
            return self.program.poll() is None
        try:
            chunk = os.read(self._terminal, 65536)
        except OSError:  # Nobody holds the other end any more.
            return False
        self.seen += re.sub("\r\n", "\n", chunk.decode(errors="replace"))
        return bool(chunk)


Seat = Callable[..., Person]


@pytest.fixture
def seat() -> Iterator[Seat]:
    """Seat somebody at a terminal with a program, as a `Person`; they leave after the test."""
    seated: list[Person] = []

    def start(*argv: str, cwd: Path, **environ: str) -> Person:
        seated.append(Person(*argv, cwd=cwd, **environ))
        return seated[-1]

    yield start
    for each in seated:
        each.leave()
