"""The events of all threads, in one order that only grows.

Owns: which lines of the journal are told, and what was there before it was begun.
Knows nothing of: how the journal is kept, what an event says, when somebody looks again.
Always true: after any event there is one rest, the same for all readers. What was there before the
journal was begun comes first, in the order of time; it is read from the threads themselves, so
that beginning a journal costs a look at the refs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.commands.event_journal import KeptJournal, OnTrouble
from uwf_git.commands.event_order import NoSuchEvent, Seen, find_thread, find_turn_end, list_new
from uwf_git.commands.open_turns import list_open_turns
from uwf_git.commands.thread_events import Telling, enter_turn, read_enter, read_events
from uwf_git.engine.events import ENTER, EventId, render_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.journal import Line
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store


class AllEvents:
    """The events of a store: all, those after *since*, or those that are still to come."""

    is_over = False
    """Whether no more can come: there can always be another thread."""

    def __init__(
        self,
        store: Store,
        telling: Telling,
        on_trouble: OnTrouble,
        *,
        since: EventId | None = None,
        from_now: bool = False,
    ) -> None:
        self._store, self._telling = store, telling
        self._since, self._from_now = since, from_now
        self._journal = KeptJournal(store, on_trouble)
        self._hidden = ""
        self._has_begun = False

    def read(self) -> Iterator[dict[str, Any]]:
        """Give what is new since the last look, oldest first.

        Raises:
            NoSuchEvent: there is no such event to begin after.
            OSError: the journal cannot be written.
        """
        lines = self._journal.take()
        if self._has_begun:
            yield from self._tell_lines(lines)
            return
        self._has_begun = True
        if self._since is not None:
            yield from self._begin_after(lines, self._since)
        elif self._from_now:
            yield from self._tell_open()
        else:
            yield from self._tell_before(lines, None)
            yield from self._tell_lines(lines)

    def _tell_open(self) -> Iterator[dict[str, Any]]:
        """Tell who is at work now, whether or not another reader has seen it begin."""
        for turn in list_open_turns(self._store):
            if turn.base in self._journal.entered:
                yield read_enter(turn, self._telling)

    def _begin_after(self, lines: list[Line], since: EventId) -> Iterator[dict[str, Any]]:
        place = self._locate(lines, since)
        if isinstance(place, int):
            yield from self._tell_lines(lines[place:])
            return
        for index, line in enumerate(lines):
            if line.word == "moved" and line.commit == place.commit:
                yield from self._after(place)
                yield from self._tell_lines(lines[index + 1 :])
                return
        yield from self._tell_before(lines, place)
        yield from self._tell_lines(lines)

    def _locate(self, lines: list[Line], since: EventId) -> int | EventId:
        """Give the line to begin at, or the event of a transition to begin after."""
        if since.word != ENTER:
            return since
        for index, line in enumerate(lines):
            if line.word == "enter" and line.commit == since.commit:
                return index + 1
        end = find_turn_end(self._store, Oid(since.commit), self._journal.heads)
        if end is None:
            # It was told while it was played, to somebody who looked at its thread alone.
            self._hidden = render_event_id(since)
        return end or EventId(since.commit)

    def _tell_before(self, lines: list[Line], since: EventId | None) -> Iterator[dict[str, Any]]:
        """Give what was there before the journal was begun, after *since*."""
        tips = {line.thread: line.commit for line in lines if line.word == "known"}
        least = None if since is None else self._find_before(tips, since)
        threads = (self._list_before(thread, tip, least) for thread, tip in tips.items())
        # Sorted, not merged: a merge of 100,000 threads takes longer than it saves.
        seen = sorted((each for thread in threads for each in thread), key=lambda each: each[:2])
        if since is not None and least is not None:
            yield from self._after(since)
            seen = seen[seen.index(least) + 1 :]
        for each in seen:
            yield from self._tell(Line("moved", each.thread, each.commit))

    def _find_before(self, tips: Mapping[ThreadId, Oid], since: EventId) -> Seen:
        thread = find_thread(self._store, since)
        tip = tips.get(thread)
        try:
            new = [] if tip is None else list_new(self._store, thread, tip, known=None)
        except StoreDamaged as error:
            raise NoSuchEvent(render_event_id(since)) from error
        for seen in new:
            if seen.commit == since.commit:
                return seen
        raise NoSuchEvent(render_event_id(since))

    def _list_before(self, thread: ThreadId, tip: Oid, least: Seen | None) -> list[Seen]:
        try:
            if least and read_snapshot(self._store, tip).commit.time_s < least.time_s:
                return []
            return list_new(self._store, thread, tip, known=None)
        except StoreDamaged as error:
            if thread in self._journal.there:
                self._journal.tell_trouble(error)
            return []

    def _after(self, since: EventId) -> Iterator[dict[str, Any]]:
        """Give what the transition tells after its event *since*."""
        if since.word is None:
            return
        commit = Oid(since.commit)
        entered = () if since.word == ENTER else self._journal.entered
        events = read_events(self._store, commit, self._telling, entered=entered)
        words = [event["id"].rpartition("-")[2] for event in events]
        if since.word not in words:
            raise NoSuchEvent(render_event_id(since))
        yield from events[words.index(since.word) + 1 :]

    def _tell_lines(self, lines: list[Line]) -> Iterator[dict[str, Any]]:
        for line in lines:
            yield from self._tell(line)

    def _tell(self, line: Line) -> Iterator[dict[str, Any]]:
        try:
            if line.word == "enter":
                turn = enter_turn(read_snapshot(self._store, line.commit), **line.told)
                events = [read_enter(turn, self._telling)]
            elif line.word == "moved":
                events = read_events(
                    self._store, line.commit, self._telling, entered=self._journal.entered
                )
            else:
                return
        except StoreDamaged as error:
            # Of a thread that was removed nothing is left to tell.
            if line.thread in self._journal.there:
                self._journal.tell_trouble(error)
            return
        yield from (event for event in events if event["id"] != self._hidden)
