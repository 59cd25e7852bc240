"""The order of transitions: a thread's own, and among threads by commit time, then thread id.

The order depends on the tips alone, so it is the same on every machine.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from uwf_git.commands.events.commit_events import read_base
from uwf_git.engine.events import ENTER, EventId, render_event_id
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_rules import carries
from uwf_git.model.names import ThreadId
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
    after: tuple[Oid, ...] = ()
    """Transitions of other threads that it follows: the split of a branch, the ends before a join.
    """


def list_new(
    store: Store, thread: ThreadId, tip: Oid, *, known: Oid | None
) -> list[OrderedTransition]:
    """List the transitions of *thread* up to *tip* that are not behind *known*, oldest first.

    A thread that has diverged may move other than forward, so *known* may not be among them.

    Raises:
        StoreDamaged: a transition cannot be read.
    """
    found: list[tuple[int, Oid, tuple[Oid, ...]]] = []
    for snapshot in walk_history(store, tip):
        if snapshot.commit.oid == known:
            break
        parents = snapshot.commit.parents
        others = parents if snapshot.record.event == "start" else parents[1:]
        found.append((snapshot.commit.time_s, snapshot.commit.oid, tuple(others)))
    else:
        behind = set() if known is None else _list_behind(store, known)
        found = [each for each in found if each[1] not in behind]
    transitions: list[OrderedTransition] = []
    latest = 0
    for time_s, oid, others in reversed(found):
        latest = max(latest, time_s)
        transitions.append(OrderedTransition(latest, thread, oid, others))
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
    """Merge the transitions of several threads, each list in order.

    By time, then thread; but a branch begins after the split, and a join follows its branches,
    though all of them may have the same second.
    """
    queues = [list(reversed(each)) for each in threads if each]
    missing = {transition.commit for queue in queues for transition in queue}
    ready = [(queue[-1].time_s, queue[-1].thread, number) for number, queue in enumerate(queues)]
    heapify(ready)
    held: dict[Oid, list[tuple[int, ThreadId, int]]] = {}
    merged: list[OrderedTransition] = []
    while ready:
        place = heappop(ready)
        number = place[-1]
        queue = queues[number]
        waits_for = next((each for each in queue[-1].after if each in missing), None)
        if waits_for is not None:
            held.setdefault(waits_for, []).append(place)
            continue
        transition = queue.pop()
        merged.append(transition)
        missing.discard(transition.commit)
        for each in held.pop(transition.commit, []):
            heappush(ready, each)
        if queue:
            heappush(ready, (queue[-1].time_s, queue[-1].thread, number))
    return merged


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
