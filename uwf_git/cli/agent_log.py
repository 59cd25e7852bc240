"""What an agent prints, passed on to standard error while it runs.

Owns: putting pieces of bytes together to text, and keeping its two outputs apart.
Knows nothing of: who runs.
Always true: nothing that it prints can move the cursor or change what stands there already:
colours are left out, other controls are spelled out. What comes after the log begins on a line of
its own.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from uwf_git.cli.streams import write_stderr
from uwf_git.cli.visible import visible_block

Forward = Callable[[bytes], None]

# ECMA-48, "select graphic rendition": colours and the like, which only adorn.
COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_BEGUN_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")


class Forwarded(NamedTuple):
    """Two functions that print what an agent prints; a piece may end within a character."""

    stderr: Forward
    stdout: Forward


@contextmanager
def forwarded_log() -> Iterator[Forward]:
    """Give a function that prints what an agent logs."""
    with forwarded_output() as forwarded:
        yield forwarded.stderr


@contextmanager
def forwarded_output() -> Iterator[Forwarded]:
    """Give functions that print what an agent logs, and what it gives as its reply."""
    lines = _Lines()
    stderr, stdout = _Stream(lines), _Stream(lines)
    try:
        yield Forwarded(stderr.forward, stdout.forward)
    finally:
        stderr.end()
        stdout.end()
        lines.begin(None)


class _Lines:
    """Standard error, where lines of two streams may not run into each other."""

    def __init__(self) -> None:
        self.writer: _Stream | None = None
        self.is_open = False

    def begin(self, writer: "_Stream | None") -> None:
        """Let *writer* write from now on; another one's line is ended."""
        if self.is_open and self.writer is not writer:
            write_stderr("\n")
            self.is_open = False
        self.writer = writer

    def write(self, writer: "_Stream", text: str) -> None:
        """Write what *writer* has to say."""
        if text:
            self.begin(writer)
            write_stderr(text)
            self.is_open = not text.endswith("\n")


class _Stream:
    """One output of an agent, as text that is safe to show."""

    def __init__(self, lines: _Lines) -> None:
        self.lines = lines
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.held = ""

    def forward(self, piece: bytes) -> None:
        """Print a piece, but for what may be half of something."""
        text = self.held + self.decoder.decode(piece)
        begun = _BEGUN_COLOUR.search(text)
        end = begun.start() if begun else len(text) - text.endswith("\r")
        self.held = text[end:]
        self.lines.write(self, _plain(text[:end]))

    def end(self) -> None:
        """Print what was held back."""
        self.lines.write(self, _plain(self.held + self.decoder.decode(b"", final=True)))
        self.held = ""


def _plain(text: str) -> str:
    # A lone carriage return lets a program write its line anew: for us each is a line.
    return visible_block(COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
