"""Forward what an agent prints to standard error while it runs.

Nothing in it can move the cursor: colours are removed, other controls are escaped. Lines of its two
outputs do not mix, nor those of agents that work at once; later output begins on a line of its own.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from uwf_git.cli.session import write_stderr
from uwf_git.model.text import visible_block, without_colours

Forward = Callable[[bytes], None]

# A reply's text counts as printed if the end of it is in the end of the log.
_MOST_SHOWN = 64 * 1024
_LEAST_TOLD = 1000

_BEGUN_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")


class Forwarded(NamedTuple):
    """Two functions that print an agent's output; a piece may end within a character.

    A reply that is one JSON object is for programs: its text is printed, unless the log has it.
    """

    stderr: Forward
    stdout: Forward


@contextmanager
def forwarded_output(lines: "Lines | None" = None, *, name: str = "") -> Iterator[Forwarded]:
    """Return functions that print an agent's log, and its reply.

    Agents that work at once share *lines*; each of their lines begins with the *name* of its agent.
    """
    lines = lines or Lines()
    stderr = _Stream(lines, name)
    stdout = _Reply(lines, name, stderr)
    try:
        yield Forwarded(stderr.forward, stdout.forward)
    finally:
        stderr.end()
        stdout.end()
        lines.end(stderr, stdout)


class Lines:
    """Standard error, where lines of several streams must not mix."""

    def __init__(self) -> None:
        self.writer: _Stream | None = None
        self.is_open = False
        self._lock = Lock()

    def end(self, *writers: "_Stream") -> None:
        """End an unfinished line of *writers*; without any, of whoever writes."""
        with self._lock:
            if not writers or self.writer in writers:
                self._begin(None)

    def _begin(self, writer: "_Stream | None") -> None:
        """Switch to *writer*; end an unfinished line of another writer."""
        if self.is_open and self.writer is not writer:
            write_stderr("\n")
            self.is_open = False
        self.writer = writer

    def write(self, writer: "_Stream", text: str) -> None:
        """Write *text* for *writer*."""
        if not text:
            return
        with self._lock:
            self._begin(writer)
            write_stderr(writer.named(text, is_begun=self.is_open))
            self.is_open = not text.endswith("\n")


class _Stream:
    def __init__(self, lines: Lines, name: str) -> None:
        self.lines, self.name = lines, name
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.held = ""
        self.shown = ""
        """The end of what was printed."""

    def forward(self, piece: bytes) -> None:
        """Print a piece, but hold back a character or escape sequence that may be incomplete."""
        text = self.held + self.decoder.decode(piece)
        begun = _BEGUN_COLOUR.search(text)
        end = begun.start() if begun else len(text) - text.endswith("\r")
        self.held = text[end:]
        told = _plain(text[:end])
        self.shown = (self.shown + told)[-_MOST_SHOWN:]
        self.lines.write(self, told)

    def named(self, text: str, *, is_begun: bool) -> str:
        """Return *text* with the name before each line that begins in it."""
        if not self.name:
            return text
        lines = text.splitlines(keepends=True)
        first = 1 if is_begun else 0
        return "".join([*lines[:first], *(f"{self.name}: {line}" for line in lines[first:])])

    def end(self) -> None:
        """Print what was held back."""
        self.lines.write(self, _plain(self.held + self.decoder.decode(b"", final=True)))
        self.held = ""


class _Reply(_Stream):
    def __init__(self, lines: Lines, name: str, log: _Stream) -> None:
        super().__init__(lines, name)
        self.log = log
        self.kept = bytearray()
        self.is_text: bool | None = None

    def forward(self, piece: bytes) -> None:
        """Print a piece of a text; keep one of an object."""
        if self.is_text:
            super().forward(piece)
            return
        self.kept += piece
        if self.is_text is None and (begin := self.kept.lstrip()):
            self.is_text = not begin.startswith(b"{")
            if self.is_text:
                super().forward(bytes(self.kept))

    def end(self) -> None:
        """Print the text of an object."""
        if not self.is_text:
            super().forward(self._find_text())
        super().end()

    def _find_text(self) -> bytes:
        try:
            fields = json.loads(self.kept)
            is_reply = "meta" in fields
        except (ValueError, TypeError, RecursionError):
            is_reply = False
        if not is_reply:
            return bytes(self.kept)
        text = str(fields.get("content") or "").strip()
        is_told = _plain(text[-_LEAST_TOLD:]) in self.log.shown
        return b"" if is_told else text.encode(errors="replace")


def _plain(text: str) -> str:
    # A lone carriage return rewrites a line; here each version is a line.
    return visible_block(without_colours(text).replace("\r\n", "\n").replace("\r", "\n"))
