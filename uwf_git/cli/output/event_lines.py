"""Events as text: one line a happening.

Of the events of a transition the last says all but how long the turn took, which is in the one
before.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from uwf_git.cli.output.screen import Screen, Styled
from uwf_git.cli.output.step_lines import StepLines
from uwf_git.cli.session.settings import Session
from uwf_git.model.text import render_duration, render_time, visible_line
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import ShortIds, read_short_ids

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
