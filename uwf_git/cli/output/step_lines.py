"""Lines of steps and events: they line up, and fit the terminal."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from uwf_git.cli.output.screen import Screen, Style, Styled
from uwf_git.cli.output.table import display_width, shorten
from uwf_git.cli.session.settings import Session
from uwf_git.model.text import render_duration, render_time, visible_line
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import ShortIds, read_short_ids

# Lines of steps, of a drive or of events: they line up, and fit the terminal.

_NUMBER, _TAIL = 2, 8
_SHORTEST_NAME, _LONGEST_NAME = 8, 20
_LEAST_WORDS = 10


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

    def mark(self, status: str) -> Styled:
        """Return the mark of a status."""
        return self.screen.mark(status)

    @property
    def again(self) -> Styled:
        """The mark of another try."""
        return Styled("↻" if self.screen.is_utf8 else "~", "yellow")

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
            said = shorten(said, max(room, _LEAST_WORDS), end=self.screen.ellipsis)
            gap = " " * (room - display_width(said)) if end else ""
        return self.paint(mark.text, mark.style) + head + said + gap + self.paint(end, "dim")

    def paint(self, text: str, style: Style | None) -> str:
        """Return *text* in a colour."""
        return self.screen.paint(text, style)

    def _shown(self, said: str) -> str:
        text = visible_line(" ".join(said.split()))
        if self.screen.is_utf8:
            return text
        return text.encode("ascii", "backslashreplace").decode("ascii")


# Events as text: one line a happening.
#
# Of the events of a transition the last says all but how long the turn took, which is in the one
# before.

_MS = 1000
_GAP = "  "
_STEPS = {"step", "answer", "join"}


class EventLines:
    """The lines of one call of `uwf events`."""

    def __init__(self, session: Session, screen: Screen, store: Store) -> None:
        self._store = store
        self._is_screen = session.is_screen
        self._zone: tzinfo | None = UTC if session.is_utc else None
        self._day = f"{self._local(session.now_ms()):%Y-%m-%d}" if session.is_screen else ""
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
            day = f"{self._local(event['timestamp']):%Y-%m-%d}"
            if day != self._day:
                self._day = day
                yield self._lines.paint(day, "bold")
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
        if event["event"] in _STEPS:
            return self._lines.mark("completed")
        if event["event"] == "attempt" and event["status"] != "failed":
            return self._lines.again
        return self._lines.mark(event["status"])

    def _time(self, event: dict[str, Any]) -> str:
        if not self._is_screen:
            return render_time(event["timestamp"])
        return f"{self._local(event['timestamp']):%H:%M:%S}"

    def _local(self, time_ms: int) -> datetime:
        return datetime.fromtimestamp(time_ms / _MS, tz=UTC).astimezone(self._zone)

    def _name(self, thread: str) -> str:
        """Return the id to show; threads that have come since are looked up when they are met."""
        if not self._is_screen:
            return visible_line(thread)
        if thread not in self._known:
            if self._ids is None or thread not in self._ids:
                self._ids = read_short_ids(self._store)
            self._known[thread] = self._ids.shorten(thread)
        return self._known[thread]
