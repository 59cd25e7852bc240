"""The order of transitions: a thread's own, and among threads by commit time, then thread id.

The order depends on the tips alone, so it is the same on every machine.
"""

from collections.abc import Iterable, Mapping
from heapq import merge
from typing import NamedTuple

from uwf_git.commands.events.commit_events import read_base
from uwf_git.engine.events import ENTER, EventId, render_event_id
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_rules import carries
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import read_snapshot


class NoSuchEvent(Refused):
    """No event has the id that a reader wants to continue after."""

    code = "no-such-event"

    def __init__(self, event: str, *, where: str = "this store") -> None:
        super().__init__(
            f"there is no event {event} in {where}",
            hint="`uwf events` lists all events, each with its `id`",
            event=event,
        )


class OrderedTransition(NamedTuple):
    """A transition with the time that orders it among those of other threads."""

    time_s: int
    """The commit's date, or that of an earlier transition of the thread if it is later."""

    thread: ThreadId
    commit: Oid


def list_new(
    store: Store, thread: ThreadId, tip: Oid, *, known: Oid | None
) -> list[OrderedTransition]:
    """List the transitions of *thread* up to *tip* that are not behind *known*, oldest first.

    A thread that has diverged may move other than forward, so *known* may not be among them.

    Raises:
        StoreDamaged: a transition cannot be read.
    """
    found: list[tuple[int, Oid]] = []
    for snapshot in walk_history(store, tip):
        if snapshot.commit.oid == known:
            break
        found.append((snapshot.commit.time_s, snapshot.commit.oid))
    else:
        behind = set() if known is None else _list_behind(store, known)
        found = [each for each in found if each[1] not in behind]
    transitions: list[OrderedTransition] = []
    latest = 0
    for time_s, oid in reversed(found):
        latest = max(latest, time_s)
        transitions.append(OrderedTransition(latest, thread, oid))
    return transitions


def _list_behind(store: Store, tip: Oid) -> set[Oid]:
    behind: set[Oid] = set()
    try:
        for snapshot in walk_history(store, tip):
            behind.add(snapshot.commit.oid)
    except StoreDamaged:
        # No ref holds a history that the thread has left; git may have deleted its older commits.
        return behind
    return behind


def merge_transitions(threads: Iterable[list[OrderedTransition]]) -> list[OrderedTransition]:
    """Merge the transitions of several threads, each list in order."""
    return list(merge(*threads, key=lambda each: (each.time_s, each.thread)))


def find_turn_end(store: Store, base: Oid, heads: Mapping[ThreadId, Oid]) -> EventId | None:
    """Return the ``enter`` place in the transition that ended the turn begun after *base*.

    None if no such turn has ended. *heads* has the tips of the threads.

    Raises:
        NoSuchEvent: no thread has the commit *base*.
        StoreDamaged: its thread cannot be read.
    """
    event = EventId(base, ENTER)
    thread = find_thread(store, event)
    tip = heads.get(thread)
    new = [] if tip is None else list_new(store, thread, tip, known=None)
    oids = [each.commit for each in new]
    if base not in oids:
        raise NoSuchEvent(render_event_id(event))
    for oid in oids[oids.index(base) + 1 :]:
        snapshot = read_snapshot(store, oid)
        if carries(snapshot.record.event, "role") and read_base(store, snapshot).commit.oid == base:
            return EventId(oid, ENTER)
    return None


def find_thread(store: Store, event: EventId) -> ThreadId:
    """Return the thread that the commit of *event* is a transition of.

    Raises:
        NoSuchEvent: the commit is no transition, or not in this store.
    """
    try:
        return read_snapshot(store, Oid(event.commit)).record.thread
    except StoreDamaged as error:
        raise NoSuchEvent(render_event_id(event)) from error
