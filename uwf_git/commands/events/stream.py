"""The stream of events: the lines of the journal, of all threads or of one thread, as events.

After each event the rest of the stream is the same for all readers. Transitions that are older than
the journal come first, by time; they are read from the threads, so that beginning a journal costs
one look at the refs.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.events.commit_events import (
    EventOptions,
    EventReader,
    describe_turn,
)
from uwf_git.commands.events.journal import (
    JournalReader,
    NoSuchEvent,
    OrderedTransition,
    find_open_turn,
    find_thread,
    find_turn_end,
    list_new,
    list_open_turns,
    merge_transitions,
)
from uwf_git.commands.split.family import Family, list_present_descendants
from uwf_git.engine.events import EventId, render_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.journal import Line
from uwf_git.store.threads.snapshot import read_snapshot

OnDamage = Callable[[StoreDamaged], None]


class EventsRequest(NamedTuple):
    thread: ThreadId | None = None
    """Only the events of this thread and of its branches; None: of all threads."""

    since: EventId | None = None

    from_now: bool = False
    """Without *since*: only new events, after the events of the turns that are being played."""


def _by_time(transition: OrderedTransition) -> tuple[int, ThreadId]:
    return transition.time_s, transition.thread


class EventStream:
    """The events of a store, or of one thread and its branches.

    In a stream of all threads, a damaged thread is reported to *on_damage*, once; in a stream of
    one thread, damage is raised.
    """

    def __init__(
        self, store: Store, request: EventsRequest, options: EventOptions, on_damage: OnDamage
    ) -> None:
        self._store, self._request, self._options = store, request, options
        self._on_damage = on_damage
        self._family = None if request.thread is None else Family(store, request.thread)
        self._journal = JournalReader(store, self._report)
        self._reader = EventReader(store, options)
        self._damage: StoreDamaged | None = None
        self._has_begun = False
        self.is_over = False
        """Whether no more events can come: the one thread has ended, and all were read."""

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events that are new since the last call, oldest first."""
        is_archived = False
        if self._request.thread is not None:
            # Before the journal is read: an archived thread has no transition after this.
            is_archived = self._has_ended(self._request.thread)
        lines = [line for line in self._journal.take() if self._is_wanted(line.thread)]
        if self._damage is not None:
            raise self._damage
        since = self._request.since
        skipped = set() if since is None else since.list_same_or_before()
        # A turn that began elsewhere before `since` is recorded here later, with the same event.
        yield from (event for event in self._read(lines) if event["id"] not in skipped)
        self.is_over = is_archived

    def _read(self, lines: list[Line]) -> Iterator[dict[str, Any]]:
        if self._has_begun:
            yield from self._read_lines(lines)
            return
        self._has_begun = True
        if self._request.since is not None:
            yield from self._begin_after(lines, self._request.since)
        elif self._request.from_now:
            yield from self._read_open_turns()
        else:
            yield from self._read_older(lines, None)
            yield from self._read_lines(lines)

    def _has_ended(self, thread: ThreadId) -> bool:
        """Return whether *thread* and its branches have ended: a kill ends one after the other."""
        if not get_head(self._store, thread).archived:
            return False
        branches = list_present_descendants(self._store, thread)
        return all(get_head(self._store, each).archived for each in branches)

    def _is_wanted(self, thread: ThreadId) -> bool:
        return self._family is None or thread in self._family

    def _report(self, thread: ThreadId, damage: StoreDamaged) -> None:
        if self._request.thread is None:
            self._on_damage(damage)
        elif thread == self._request.thread:
            self._damage = damage
        elif self._is_wanted(thread):
            self._on_damage(damage)

    def _report_line(self, thread: ThreadId, damage: StoreDamaged) -> None:
        """Report damage to a thread that has a ref; a removed thread has no events left."""
        if thread not in self._journal.threads:
            return
        if thread == self._request.thread:
            raise damage
        self._journal.report(thread, damage)

    def _read_open_turns(self) -> Iterator[dict[str, Any]]:
        """Yield the beginnings of the open turns, whichever reader recorded them."""
        if self._request.thread is None:
            turns = list(list_open_turns(self._store))
        else:
            root = self._request.thread
            threads = [root, *list_present_descendants(self._store, root)]
            found = (find_open_turn(self._store, thread) for thread in threads)
            turns = [turn for turn in found if turn is not None]
        for turn in turns:
            if turn.started_after in self._journal.entered:
                yield from self._reader.read_enter(turn)

    def _begin_after(self, lines: list[Line], since: EventId) -> Iterator[dict[str, Any]]:
        place = self._locate(lines, since)
        if isinstance(place, int):
            yield from self._read_lines(lines[place:])
            return
        for index, line in enumerate(lines):
            if line.word == "moved" and line.commit == place.commit:
                yield from self._read_rest(place)
                yield from self._read_lines(lines[index + 1 :])
                return
        yield from self._read_older(lines, place)
        yield from self._read_lines(lines)

    def _locate(self, lines: list[Line], since: EventId) -> int | EventId:
        """Return the line to begin at, or the event of a transition to begin after."""
        if not since.is_of_turn:
            return since
        for index, line in enumerate(lines):
            if line.word == "enter" and line.commit == since.commit:
                # Its first events are skipped.
                return index
        if {line.thread for line in lines} == {self._request.thread}:
            # What steered the thread meanwhile may not have been seen.
            return EventId(since.commit)
        end = find_turn_end(self._store, Oid(since.commit), self._journal.heads)
        return EventId(since.commit) if end is None else end._replace(word=since.word)

    def _read_older(self, lines: list[Line], since: EventId | None) -> Iterator[dict[str, Any]]:
        """Yield the events that are older than the journal, after *since*."""
        tips = {line.thread: line.commit for line in lines if line.word == "known"}
        least, beside = None, list[OrderedTransition]()
        if since is not None:
            least, beside = self._find_older(tips, since)
        threads = (
            beside
            if beside and beside[0].thread == thread
            else self._list_older(thread, tip, least)
            for thread, tip in tips.items()
        )
        # Sorted, not merged: a merge of 100,000 threads takes longer than it saves.
        listed = list(threads)
        if any(each.after for thread in listed for each in thread):
            older = merge_transitions(listed)
        else:
            older = sorted((each for thread in listed for each in thread), key=_by_time)
        if since is not None and least is not None:
            yield from self._read_rest(since)
            older = older[older.index(least) + 1 :]
        for each in older:
            yield from self._read_line(Line("moved", each.thread, each.commit))

    def _find_older(
        self, tips: Mapping[ThreadId, Oid], since: EventId
    ) -> tuple[OrderedTransition, list[OrderedTransition]]:
        """Return the transition of *since*, and all transitions of its thread, oldest first."""
        try:
            thread = find_thread(self._store, since)
        except NoSuchEvent as error:
            raise self._no_such_event(since) from error
        if not self._is_wanted(thread):
            raise self._no_such_event(since)
        tip = tips.get(thread)
        try:
            older = [] if tip is None else list_new(self._store, thread, tip, known=None)
        except StoreDamaged as error:
            if self._request.thread is not None:
                raise
            raise self._no_such_event(since) from error
        for transition in older:
            if transition.commit == since.commit:
                return transition, older
        raise self._no_such_event(since)

    def _list_older(
        self, thread: ThreadId, tip: Oid, least: OrderedTransition | None
    ) -> list[OrderedTransition]:
        try:
            if least and read_snapshot(self._store, tip).commit.time_s < least.time_s:
                return []
            return list_new(self._store, thread, tip, known=None)
        except StoreDamaged as error:
            self._report_line(thread, error)
            return []

    def _read_rest(self, since: EventId) -> Iterator[dict[str, Any]]:
        """Yield the events that follow *since* in the same transition."""
        if since.word is None:
            return
        entered = () if since.is_of_turn else self._journal.entered
        events = self._reader.read(Oid(since.commit), entered=entered)
        words = [event["id"].rpartition("-")[2] for event in events]
        if since.word not in words:
            raise self._no_such_event(since)
        yield from events[words.index(since.word) + 1 :]

    def _no_such_event(self, place: EventId) -> NoSuchEvent:
        thread = self._request.thread
        event = render_event_id(self._request.since or place)
        return NoSuchEvent(event, where="this store" if thread is None else f"thread {thread}")

    def _read_lines(self, lines: list[Line]) -> Iterator[dict[str, Any]]:
        for line in lines:
            yield from self._read_line(line)

    def _read_line(self, line: Line) -> Iterator[dict[str, Any]]:
        try:
            if line.word == "enter":
                turn = describe_turn(read_snapshot(self._store, line.commit), **line.told)
                events = self._reader.read_enter(turn)
            elif line.word == "moved":
                events = self._reader.read(line.commit, entered=self._journal.entered)
            else:
                return
        except StoreDamaged as error:
            self._report_line(line.thread, error)
            return
        yield from events
