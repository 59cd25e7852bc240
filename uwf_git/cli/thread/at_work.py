"""Live lines of a drive: one for each role at work, below the lines of the steps that are done."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

from uwf_git.cli.output.live_lines import LiveLines
from uwf_git.cli.output.spending import describe_usage
from uwf_git.cli.session.streams import stderr_columns
from uwf_git.commands.agent_run.step_dir import ReportedUsage
from uwf_git.commands.turn.turn import Turn
from uwf_git.model.names import ThreadId
from uwf_git.model.text import render_duration
from uwf_git.model.thread import add_usage

_MINUTE_S, _MS = 60, 1000

# From here on, in columns, lines have room for tokens too.
_WIDE = 100

# Each agent at work ticks 20 times a second.
_PAUSE_S = 0.1


class _Line(NamedTuple):
    numbers: list[int]
    describe: Callable[[], str]


class AtWork:
    """The live lines of one drive; without *is_live* nothing is shown."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._live = LiveLines()
        self._lock = RLock()
        self._lines: dict[ThreadId, _Line] = {}
        self._hidden = 0
        self._drawn_s = float("-inf")

    @contextmanager
    def above(self) -> Iterator[None]:
        """Let the block write whole lines above the live ones."""
        with self._lock:
            self._live.clear()
            yield
            self._draw()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Show nothing while an agent uses the terminal."""
        with self._lock:
            self._hidden += 1
            self._live.clear()
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    @contextmanager
    def shown(self, thread: ThreadId, name: str, describe: Callable[[], str]) -> Iterator[None]:
        """Show a line for *thread* during the block; *describe* makes it at each look.

        *name* is that of a branch: ``2.0 tester`` stands before ``10.0 tester``.
        """
        with self._lock:
            numbers = name.partition(" ")[0].split(".") if name else []
            self._lines[thread] = _Line([int(each) for each in numbers], describe)
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                del self._lines[thread]
                self._draw()

    def tick(self) -> None:
        """Draw the lines again, some times a second at most."""
        with self._lock:
            if time.monotonic() - self._drawn_s >= _PAUSE_S:
                self._draw()

    def _draw(self) -> None:
        if self._is_live and not self._hidden:
            self._drawn_s = time.monotonic()
            lines = sorted(self._lines.values(), key=lambda line: line.numbers)
            self._live.show([line.describe() for line in lines])


class Account:
    """What is said of a turn at work: how long, which attempt, tokens and cost."""

    def __init__(self, turn: Turn, now_ms: Callable[[], int], since_ms: int) -> None:
        self._turn, self._now_ms, self._since_ms = turn, now_ms, since_ms
        self._reported = ReportedUsage(turn.run_dir.step_dir)

    def tell(self) -> str:
        """Return what the turn has taken by now; tokens and cost are those of the thread.

        Where lines are short the cost alone, if it is known: the log needs the room.
        """
        seconds = (self._now_ms() - self._since_ms) // _MS
        parts = [tell_elapsed(seconds), f"attempt {self._turn.attempt}"]
        spent: dict[str, Any] = dict(self._turn.present.usage)
        told = describe_usage(add_usage(spent, self._reported.read()), short=True)
        told = told if stderr_columns() >= _WIDE else told[-1:]
        return ", ".join([*parts, *(["so far " + ", ".join(told)] if told else [])])


def tell_elapsed(seconds: int) -> str:
    """Return a duration without tenths: it is drawn anew each second."""
    return f"{seconds} s" if seconds < _MINUTE_S else render_duration(seconds * _MS)
