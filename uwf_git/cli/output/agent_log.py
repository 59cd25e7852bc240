"""Forward what an agent prints to standard error while it runs.

Nothing in it can move the cursor: colours are removed, other controls are escaped. Lines of its two
outputs do not mix, and later output begins on a line of its own.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from uwf_git.cli.output.visible import visible_block
from uwf_git.cli.session.streams import write_stderr

Forward = Callable[[bytes], None]

# ECMA-48, "select graphic rendition": colours and the like.
COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_BEGUN_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")


class Forwarded(NamedTuple):
    """Two functions that print an agent's output; a piece may end within a character."""

    stderr: Forward
    stdout: Forward


@contextmanager
def forwarded_log() -> Iterator[Forward]:
    """Return a function that prints an agent's log."""
    with forwarded_output() as forwarded:
        yield forwarded.stderr


@contextmanager
def forwarded_output() -> Iterator[Forwarded]:
    """Return functions that print an agent's log, and its reply."""
    lines = _Lines()
    stderr, stdout = _Stream(lines), _Stream(lines)
    try:
        yield Forwarded(stderr.forward, stdout.forward)
    finally:
        stderr.end()
        stdout.end()
        lines.begin(None)


class _Lines:
    """Standard error, where lines of two streams must not mix."""

    def __init__(self) -> None:
        self.writer: _Stream | None = None
        self.is_open = False

    def begin(self, writer: "_Stream | None") -> None:
        """Switch to *writer*; end an unfinished line of another one."""
        if self.is_open and self.writer is not writer:
            write_stderr("\n")
            self.is_open = False
        self.writer = writer

    def write(self, writer: "_Stream", text: str) -> None:
        """Write *text* for *writer*."""
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
        """Print a piece, but hold back a character or escape sequence that may be incomplete."""
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
    # A lone carriage return rewrites a line; here each version is a line.
    return visible_block(COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
