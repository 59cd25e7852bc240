"""Forward what an agent prints to standard error while it runs.

Nothing in it can move the cursor: colours are removed, other controls are escaped. Lines of its two
outputs do not mix, nor those of agents that work at once; later output begins on a line of its own.
"""

import codecs
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import partial
from threading import Lock
from types import FrameType
from typing import Any, NamedTuple

from uwf_git.cli.caller import sigterm_as_interrupt
from uwf_git.cli.output.screen import Screen, Styled, display_width, shorten, tell_local
from uwf_git.cli.session import (
    STDERR,
    STDOUT,
    OutputFailed,
    ReaderGone,
    Session,
    terminal_size,
    write_stderr,
    write_stdout,
)
from uwf_git.model.text import (
    render_duration,
    render_time,
    visible_block,
    visible_line,
    without_colours,
)
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import ShortIds, read_short_ids

with suppress(ImportError):
    # Not on every system.
    import termios

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
        size = terminal_size(STDERR)
        most = max(size.lines - 1, 1)
        told = list(lines)
        if len(told) > most:
            told[most - 1 :] = [f"   and {len(told) - most + 1} more"]
        if not told:
            self.clear()
        elif (told, size) != (self._shown, self._size):
            # The cursor rests at the left: what is typed there (^C) does not wrap.
            write_stderr(self._erase(size) + "\n".join(told) + "\r")
            self._shown, self._size = told, size

    def clear(self) -> None:
        """Clear the lines; the next output begins where they began."""
        if self._shown:
            write_stderr(self._erase(terminal_size(STDERR)))
            self._shown = []

    def _erase(self, size: os.terminal_size) -> str:
        """Return what erases the shown lines: a terminal that became narrower has wrapped them."""
        widths = [display_width(without_colours(line)) for line in self._shown]
        rows = [max(1, -(-width // size.columns)) for width in widths] or [1]
        below = _DOWN.format(rows[-1] - 1) if rows[-1] > 1 else ""
        return "\r" + below + _ERASE + (_UP + _ERASE) * (sum(rows) - 1)


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
        size = terminal_size(STDOUT)
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


# Lines of steps, of a drive or of events: they line up, and fit the terminal.

_NUMBER, _TAIL = 2, 8
_SHORTEST_NAME, _LONGEST_NAME = 8, 20


class StepLines:
    """Lines of steps: mark, number, name, words, and how long it took."""

    def __init__(
        self, screen: Screen, columns: Callable[[], int | None], *, before: int = 0
    ) -> None:
        """Create them; *before* is how many columns stand before each."""
        self.screen = screen
        self.before = before
        self._columns = columns
        self._name_width = _SHORTEST_NAME

    def make_room(self, names: Iterable[str]) -> None:
        """Line up with *names* as well from now on."""
        widths = (min(display_width(self._shown(name)), _LONGEST_NAME) for name in names)
        self._name_width = max(self._name_width, *widths, 0)

    def format(
        self, mark: Styled, name: str, said: str, *, number: int | None = None, tail: str = ""
    ) -> str:
        """Return a line: mark, number, name, words that are cut to fit, and *tail* at its end."""
        self.make_room([name])
        columns = self._columns()
        width = self._name_width if columns is None else min(self._name_width, columns // 5)
        name = shorten(self._shown(name), width, end=self.screen.ellipsis)
        padding = " " * (width - display_width(name))
        count = "" if number is None else str(number)
        head = f" {count:>{_NUMBER}} {name}{padding}  "
        end = f"{tail:>{_TAIL}}" if tail else ""
        said = self._shown(said)
        gap, end = ("  ", end.strip()) if end and columns is None else ("", end)
        if columns is not None:
            # Some terminals move to the next line when the last column is written.
            room = columns - 1 - self.before
            room -= len(mark.text) + display_width(head) + len(end)
            said = shorten(said, max(room, 1), end=self.screen.ellipsis)
            gap = " " * (room - display_width(said)) if end else ""
        paint = self.screen.paint
        return paint(mark.text, mark.style) + head + said + gap + paint(end, "dim")

    def _shown(self, said: str) -> str:
        return self.screen.spell(" ".join(said.split()))


# Events as text: one line a happening.
#
# Of the events of a transition the last says all but how long the turn took, which is in the one
# before.

_GAP = "  "
_STEPS = {"step", "answer", "join"}


class EventLines:
    """The lines of one call of `uwf events`."""

    def __init__(self, session: Session, screen: Screen, store: Store) -> None:
        self._store, self._screen = store, screen
        self._is_screen = session.is_screen
        self._local = partial(tell_local, zone=UTC if session.is_utc else None)
        self._day = self._local(session.now_ms(), "%Y-%m-%d") if session.is_screen else ""
        self._ids: ShortIds | None = None
        self._known: dict[str, str] = {}
        self._took: tuple[str, int] | None = None
        self._lines = StepLines(screen, session.text_width)

    def add(self, event: dict[str, Any]) -> Iterator[str]:
        """Yield the lines that *event* adds: none, or one, after one for a new day."""
        if event["type"] == "node:exit":
            self._took = (event["commit"], event["payload"].get("durationMs", 0))
        if not event["type"].startswith("workflow:"):
            return
        if self._is_screen:
            day = self._local(event["timestamp"], "%Y-%m-%d")
            if day != self._day:
                self._day = day
                yield self._screen.paint(day, "bold")
        before = f"{self._time(event)}{_GAP}{self._name(event['taskId'])}{_GAP}"
        self._lines.before = len(before)
        yield before + self._line(event)

    def _line(self, event: dict[str, Any]) -> str:
        role, kind = event["role"] or "", event["event"]
        is_step = kind in _STEPS
        said = str(event["payload"].get("error") or event["reason"] or event["subject"] or "")
        if is_step:
            said = said.removeprefix(f"{role}: ")
        took = self._took if is_step or kind == "attempt" else None
        tail = render_duration(took[1]) if took is not None and took[0] == event["commit"] else ""
        number = event["depth"] if is_step else None
        return self._lines.format(self._mark(event), role, said, number=number, tail=tail)

    def _mark(self, event: dict[str, Any]) -> Styled:
        status = event["status"]
        if event["event"] in _STEPS:
            status = "completed"
        elif event["event"] == "attempt" and status != "failed":
            status = "again"
        return self._screen.mark(status)

    def _time(self, event: dict[str, Any]) -> str:
        if not self._is_screen:
            return render_time(event["timestamp"])
        return self._local(event["timestamp"], "%H:%M:%S")

    def _name(self, thread: str) -> str:
        """Return the id to show; threads that have come since are looked up when they are met."""
        if not self._is_screen:
            return visible_line(thread)
        if thread not in self._known:
            if self._ids is None or thread not in self._ids:
                self._ids = read_short_ids(self._store)
            self._known[thread] = self._ids.shorten(thread)
        return self._known[thread]
