"""The events of one thread, from its own commits.

Owns: what of it is told, and what is new at each look.
Knows nothing of: other threads, the journal.
Always true: an event's id is a place in the thread. ``node:enter`` is told while its turn is
played, and otherwise right before its ``node:exit``; whoever asks for what comes after one gets
what came after the commit that it belongs to, so that nothing is missed whenever it was told.
"""

from collections.abc import Iterator
from typing import Any

from uwf_git.commands.event_order import NoSuchEvent, list_new
from uwf_git.commands.open_turns import find_open_turn
from uwf_git.commands.thread_events import Telling, read_enter, read_events
from uwf_git.engine.events import ENTER, Entered, EventId, render_event_id
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import get_head
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store


class ThreadEvents:
    """The events of *thread*: all, those after *since*, or those that are still to come."""

    def __init__(
        self,
        store: Store,
        thread: ThreadId,
        telling: Telling,
        *,
        since: EventId | None = None,
        from_now: bool = False,
    ) -> None:
        self._store, self._thread, self._telling = store, thread, telling
        self._since, self._from_now = since, from_now
        self._head: Oid | None = None
        self._entered: set[Oid] = set()
        self.is_over = False
        """Whether no more can come: the thread has ended, and all was told."""

    def read(self) -> Iterator[dict[str, Any]]:
        """Give what is new since the last look, oldest first.

        Raises:
            NoSuchThread: there is none, or it was removed.
            NoSuchEvent: it has no such event to begin after.
            StoreDamaged: it cannot be read.
        """
        # Before the head: were it the other way, a turn that ends in between would be told of
        # after its end.
        turn = find_open_turn(self._store, self._thread, known=self._entered)
        head = get_head(self._store, self._thread)
        if self._head is None:
            yield from self._begin(head.commit, turn)
        elif self._head != head.commit or turn is not None:
            seen = list_new(self._store, self._thread, head.commit, known=self._head)
            yield from self._tell(self._head, [each.commit for each in seen], turn)
        self._head, self.is_over = head.commit, head.archived

    def _begin(self, head: Oid, turn: Entered | None) -> Iterator[dict[str, Any]]:
        seen = list_new(self._store, self._thread, head, known=None)
        commits = [each.commit for each in seen]
        since = EventId(head) if self._from_now and self._since is None else self._since
        if since is None:
            yield from self._tell(None, commits, turn)
            return
        try:
            place = commits.index(Oid(since.commit))
        except ValueError:
            event = render_event_id(since)
            raise NoSuchEvent(event, where=f"thread {self._thread}") from None
        if since.word == ENTER:
            self._entered.add(Oid(since.commit))
        elif since.word is not None:
            yield from self._rest(since)
        yield from self._tell(commits[place], commits[place + 1 :], turn)

    def _rest(self, since: EventId) -> Iterator[dict[str, Any]]:
        """Give what its own commit tells after the event *since*."""
        events = read_events(self._store, Oid(since.commit), self._telling)
        ids = [event["id"] for event in events]
        if render_event_id(since) not in ids:
            raise NoSuchEvent(render_event_id(since), where=f"thread {self._thread}")
        yield from events[ids.index(render_event_id(since)) + 1 :]

    def _tell(
        self, before: Oid | None, commits: list[Oid], turn: Entered | None
    ) -> Iterator[dict[str, Any]]:
        """Give the events of *commits*, which follow *before*, with the turn that is open."""
        is_open_before = turn is not None and self._is_base(before, turn)
        if turn is not None and is_open_before:
            yield self._enter(turn)
        for commit in commits:
            yield from read_events(self._store, commit, self._telling, entered=self._entered)
            if turn is not None and turn.base == commit:
                yield self._enter(turn)

    def _is_base(self, commit: Oid | None, turn: Entered) -> bool:
        if commit is None:
            return False
        return find_base(self._store, read_snapshot(self._store, commit)) == turn.base

    def _enter(self, turn: Entered) -> dict[str, Any]:
        self._entered.add(Oid(turn.base))
        return read_enter(turn, self._telling)
