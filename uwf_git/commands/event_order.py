"""Event order: which transitions of which threads come one after the other.

Owns: the walk from what is known of a thread to where it is, and the order among threads.
Knows nothing of: events, who asks.
Always true: the transitions of a thread stay in its own order. Among threads the time of their
commits decides, then the thread's id, so that everybody finds the same order for the same tips.
"""

from collections.abc import Iterable, Mapping
from heapq import merge
from typing import NamedTuple

from uwf_git.commands.thread_events import read_base
from uwf_git.engine.events import ENTER, EventId, render_event_id
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.thread import STEPS
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.history import walk_history
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

_TURNS = STEPS | {"attempt", "wait"}


class NoSuchEvent(Refused):
    """No event has the id from which on somebody wants to be told."""

    code = "no-such-event"

    def __init__(self, event: str, *, where: str = "this store") -> None:
        super().__init__(
            f"there is no event {event} in {where}",
            hint="`uwf events` gives all that there are, each with its `id`",
            event=event,
        )


class Seen(NamedTuple):
    """A transition in the order of all."""

    time_s: int
    """The commit's date; never before that of the transition before it."""

    thread: ThreadId
    commit: Oid


def list_new(store: Store, thread: ThreadId, tip: Oid, *, known: Oid | None) -> list[Seen]:
    """Give the transitions of *thread* up to *tip* that are not behind *known*, oldest first.

    A thread that had gone two ways may have moved elsewhere than forward.

    Raises:
        StoreDamaged: one of them cannot be read.
    """
    found: list[tuple[int, Oid]] = []
    for snapshot in walk_history(store, tip):
        if snapshot.commit.oid == known:
            break
        found.append((snapshot.commit.time_s, snapshot.commit.oid))
    else:
        behind = set() if known is None else _list_behind(store, known)
        found = [each for each in found if each[1] not in behind]
    seen: list[Seen] = []
    latest = 0
    for time_s, oid in reversed(found):
        latest = max(latest, time_s)
        seen.append(Seen(latest, thread, oid))
    return seen


def _list_behind(store: Store, tip: Oid) -> set[Oid]:
    behind: set[Oid] = set()
    try:
        for snapshot in walk_history(store, tip):
            behind.add(snapshot.commit.oid)
    except StoreDamaged:
        # Nothing keeps what a thread has left; what of it is still there was told.
        return behind
    return behind


def merge_seen(threads: Iterable[list[Seen]]) -> list[Seen]:
    """Put the transitions of several threads in one order."""
    return list(merge(*threads, key=lambda seen: (seen.time_s, seen.thread)))


def find_turn_end(store: Store, base: Oid, heads: Mapping[ThreadId, Oid]) -> EventId | None:
    """Give the place where it is told for good that a turn began after *base*.

    None if nothing is recorded of such a turn. *heads* says where the threads are.

    Raises:
        NoSuchEvent: no thread has that commit.
        StoreDamaged: its thread cannot be read.
    """
    event = EventId(base, ENTER)
    thread = find_thread(store, event)
    tip = heads.get(thread)
    new = [] if tip is None else list_new(store, thread, tip, known=None)
    oids = [seen.commit for seen in new]
    if base not in oids:
        raise NoSuchEvent(render_event_id(event))
    for oid in oids[oids.index(base) + 1 :]:
        snapshot = read_snapshot(store, oid)
        if snapshot.record.event in _TURNS and read_base(store, snapshot).commit.oid == base:
            return EventId(oid, ENTER)
    return None


def find_thread(store: Store, event: EventId) -> ThreadId:
    """Give the thread that the commit of *event* is a transition of.

    Raises:
        NoSuchEvent: it is none, or not here.
    """
    try:
        return read_snapshot(store, Oid(event.commit)).record.thread
    except StoreDamaged as error:
        raise NoSuchEvent(render_event_id(event)) from error
