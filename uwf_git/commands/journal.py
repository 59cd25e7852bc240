"""The journal: open turns and transitions in the order in which this store first saw them."""

import errno
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Any, NamedTuple

from uwf_git.agents.run_files import find_run_start_ms
from uwf_git.commands.agent_run.runs import find_player, read_begun_turn
from uwf_git.commands.commit_events import EventOptions, EventReader, Moment, describe_turn
from uwf_git.commands.family import Family, list_present_descendants
from uwf_git.engine.events import ENTER, EventId, TurnStarted, render_event_id
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_rules import carries
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.objects.commit import descends
from uwf_git.store.refs import BadRef
from uwf_git.store.store import Store, check_exists
from uwf_git.store.threads.heads import find_head, get_head
from uwf_git.store.threads.history import read_snapshot, walk_history
from uwf_git.store.threads.local_files import get_run_dir, list_run_dirs, list_threads_with_runs
from uwf_git.store.threads.watch import Journal, Line, RefWatch, Tips, hold_journal

# Find open turns: begun, and not recorded yet.
#
# A turn is named by the commit after which it began, as is its run directory. It stays open when
# its engine dies: the next step records the outcome.


def list_open_turns(
    store: Store, threads: Iterable[ThreadId] | None = None, *, known: Container[Oid] = ()
) -> list[TurnStarted]:
    """List the open turns, of all threads or of some, unless they began after one of *known*."""
    threads = list_threads_with_runs(store) if threads is None else threads
    return [turn for each in threads if (turn := find_open_turn(store, each, known=known))]


def find_open_turn(
    store: Store, thread: ThreadId, *, known: Container[Oid] = ()
) -> TurnStarted | None:
    """Return the open turn of *thread*, unless it began after a commit in *known*, or None."""
    if not any(run.commit not in known for run in list_run_dirs(store, thread)):
        return None
    with suppress(StoreDamaged):
        head = find_head(store, thread)
        base = None if head is None else read_snapshot(store, head.commit).turn_start
        if base is None or base in known:
            return None
        run = get_run_dir(store, thread, base)
        started_ms = find_run_start_ms(run.path)
        role, agent = find_player(run)
        if started_ms is None or role is None:
            return None
        begun = read_begun_turn(run)
        at = None if begun is None else begun.at
        snapshot = read_snapshot(store, base)
        return describe_turn(Moment(snapshot), role=role, agent=agent, started_ms=started_ms, at=at)
    # The turn has not begun yet, or has ended: then its commit has the event.
    return None


# The order of transitions: a thread's own, and among threads by commit time, then thread id.
#
# The order depends on the tips alone, so it is the same on every machine.


class NoSuchEvent(Refused):
    """No event has the id that a reader wants to continue after."""

    code = "no-such-event"

    def __init__(self, event: str, *, where: str = "this store") -> None:
        super().__init__(
            f"there is no event {event} in {where}",
            hint="`uwf events` lists all events, each with its `id`; a removed thread has none",
            event=event,
        )


class OrderedTransition(NamedTuple):
    time_s: int
    """The commit's date, or the date of an earlier transition of the thread if that is later."""

    thread: ThreadId
    commit: Oid
    after: tuple[Oid, ...] = ()
    """Transitions of other threads that it follows: the split of a branch, the ends before a join.
    """


def list_new(
    store: Store, thread: ThreadId, tip: Oid, *, known: Oid | None
) -> list[OrderedTransition]:
    """List the transitions of *thread* up to *tip* that are not behind *known*, oldest first."""
    found: list[tuple[int, Oid, tuple[Oid, ...]]] = []
    for snapshot in walk_history(store, tip):
        if snapshot.commit.oid == known:
            break
        parents = snapshot.commit.parents
        others = parents if snapshot.record.event == "start" else parents[1:]
        found.append((snapshot.commit.time_s, snapshot.commit.oid, tuple(others)))
    else:
        behind: set[Oid] = set()
        # No ref holds a history that the thread has left; git may have deleted its older commits.
        with suppress(StoreDamaged):
            if known is not None:
                behind.update(old.commit.oid for old in walk_history(store, known))
        found = [each for each in found if each[1] not in behind]
    transitions: list[OrderedTransition] = []
    latest = 0
    for time_s, oid, others in reversed(found):
        latest = max(latest, time_s)
        transitions.append(OrderedTransition(latest, thread, oid, others))
    return transitions


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
    """Return the ``enter`` place in the transition that ended the turn after *base*."""
    event = EventId(base, ENTER)
    thread = find_thread(store, event)
    tip = heads.get(thread)
    new = [] if tip is None else list_new(store, thread, tip, known=None)
    oids = [each.commit for each in new]
    if base not in oids:
        raise NoSuchEvent(render_event_id(event))
    for oid in oids[oids.index(base) + 1 :]:
        snapshot = read_snapshot(store, oid)
        if carries(snapshot.record.event, "role"):
            before = read_snapshot(store, snapshot.commit.parents[0])
            if before.turn_start == base:
                return EventId(oid, ENTER)
    return None


def find_thread(store: Store, event: EventId) -> ThreadId:
    try:
        return read_snapshot(store, Oid(event.commit)).record.thread
    except StoreDamaged as error:
        raise NoSuchEvent(render_event_id(event)) from error


# Read the journal, and append a line for each transition and open turn that it lacks.
#
# Every reader appends, under the journal's lock. A reader that may not write keeps its own in
# memory.

OnThreadDamage = Callable[[ThreadId, StoreDamaged], None]

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}

_OWN = "-"
"""The name of a journal that is only in memory."""


class JournalReader:
    """One reader's copy of the journal; reports a damaged thread once, and reads the others."""

    def __init__(self, store: Store, on_damage: OnThreadDamage) -> None:
        self._store, self._on_damage = store, on_damage
        self._watch = RefWatch(store)
        self._name = ""
        self._end = 0
        # The tips that were examined, though the journal has another tip for the thread.
        self._examined: dict[ThreadId, Oid] = {}
        self._reported: set[str] = set()
        # Read, and not yet taken.
        self._lines: list[Line] = []
        self.heads: dict[ThreadId, Oid] = {}

        self.entered: set[Oid] = set()
        """The commits after which the journal has an ``enter`` line."""

    def take(self) -> list[Line]:
        self._catch_up()
        lines, self._lines = self._lines, []
        return lines

    def _catch_up(self) -> None:
        """Read the lines that other readers appended, and append what is new in the refs."""
        # The lock would make its folder anew, where a store that was moved may come back.
        check_exists(self._store)
        with self._held() as journal:
            # Before the refs, so that a turn that ends in between begins before its end.
            turns = list_open_turns(self._store, known=self.entered)
            tips = self._watch.look()
            if tips is not None:
                for ref in tips.bad:
                    self.report(ThreadId(ref.rpartition("/")[2]), BadRef(ref))
            missed = self._load(journal, tips)
            new = self._find_new(tips.heads if tips else {}, self.heads, turns)
            if journal is not None and new:
                self._end = journal.append(new, self._end)
            self._take([*missed, *new])

    @contextmanager
    def _held(self) -> Iterator[Journal | None]:
        """Lock the journal; yield None if it may not be written."""
        with ExitStack() as stack:
            journal = None
            try:
                journal = stack.enter_context(hold_journal(self._store))
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
            yield journal

    def _load(self, journal: Journal | None, tips: Tips | None) -> list[Line]:
        """Read the journal on, or begin it; return what this reader lacks of a new journal."""
        if journal is None:
            if not self._name and tips is not None:
                self._name = _OWN
                self._take(_known(tips.heads))
            return []
        if journal.name and journal.name == self._name:
            read = journal.read(self._end)
            if read is not None:
                self._end = read[1]
                self._take(read[0])
                return []
        mine, was_begun = dict(self.heads), bool(self._name)
        read = journal.read(0) if journal.name and journal.name != self._name else None
        if read is None:
            journal.begin(_known(mine if was_begun or tips is None else tips.heads))
            read = journal.read(0) or ([], 0)
        self._name, self._end = journal.name, read[1]
        untaken, self._lines = self._lines, []
        self._take(read[0])
        if not was_begun:
            return []
        # The journal was deleted: its first lines are not what this reader continues from.
        self._lines = untaken
        return self._find_new(dict(self.heads), mine, [])

    def _take(self, lines: list[Line]) -> None:
        self._lines += lines
        for line in lines:
            if line.word == "enter":
                self.entered.add(line.commit)
            else:
                self.heads[line.thread] = line.commit

    def _find_new(
        self, tips: Mapping[ThreadId, Oid], known: Mapping[ThreadId, Oid], turns: list[TurnStarted]
    ) -> list[Line]:
        """Return the lines of the transitions that are not *known* and of *turns*, in order."""
        new: dict[ThreadId, list[OrderedTransition]] = {}
        for thread, tip in tips.items():
            if tip in {known.get(thread), self._examined.get(thread)}:
                continue
            self._examined[thread] = tip
            try:
                new[thread] = list_new(self._store, thread, tip, known=known.get(thread))
            except StoreDamaged as error:
                self.report(thread, error)
        opened = [turn for turn in turns if self._is_open(turn, new, known)]
        first = {turn.started_after: turn for turn in opened}
        lines = [_enter(turn) for turn in opened if not _is_among(turn, new)]
        for transition in merge_transitions(new.values()):
            lines.append(Line("moved", transition.thread, transition.commit))
            if transition.commit in first:
                lines.append(_enter(first[transition.commit]))
        return lines

    def _is_open(
        self,
        turn: TurnStarted,
        new: Mapping[ThreadId, list[OrderedTransition]],
        known: Mapping[ThreadId, Oid],
    ) -> bool:
        """Check that *turn* has no line and no end: its run directory may outlive it."""
        if turn.started_after in self.entered:
            return False
        if _is_among(turn, new):
            return True
        tip = known.get(turn.record.thread)
        try:
            began = None if tip is None else read_snapshot(self._store, tip).turn_start
        except StoreDamaged:
            return False
        return turn.started_after == began

    def report(self, thread: ThreadId, damage: StoreDamaged) -> None:
        """Report damage to *thread*, once."""
        if damage.message not in self._reported:
            self._reported.add(damage.message)
            self._on_damage(thread, damage)


def _known(heads: Mapping[ThreadId, Oid]) -> list[Line]:
    return [Line("known", thread, oid) for thread, oid in sorted(heads.items())]


def _enter(turn: TurnStarted) -> Line:
    played = {"role": turn.role, "agent": turn.agent, "started_ms": turn.started_ms}
    if turn.at is not None:
        played["at"] = turn.at
    return Line("enter", turn.record.thread, Oid(turn.started_after), json.dumps(played))


def _is_among(turn: TurnStarted, new: Mapping[ThreadId, list[OrderedTransition]]) -> bool:
    return any(each.commit == turn.started_after for each in new.get(turn.record.thread, ()))


# The stream of events: the lines of the journal, of all threads or of one thread, as events.
#
# After each event the rest of the stream is the same for all readers. Transitions that are older
# than the journal come first, by time; they are read from the threads, so that beginning a
# journal costs one look at the refs.

OnDamage = Callable[[StoreDamaged], None]


class EventsRequest(NamedTuple):
    thread: ThreadId | None = None
    """Only the events of this thread and of its branches; None: of all threads."""

    since: EventId | None = None

    from_now: bool = False
    """Without *since*: only new events, after the events of the turns that are being played."""


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
        root = self._request.thread
        # Before the journal is read: an archived thread has no transition after this.
        is_archived = root is not None and self._has_ended(root)
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

    def _report_line(self, thread: ThreadId, commit: Oid, damage: StoreDamaged) -> None:
        """Report damage at *commit*, unless its thread was removed, or leads to it no more."""
        with suppress(StoreDamaged):
            head = find_head(self._store, thread)
            if head is None or not descends(self._store.objects, head.commit, commit):
                return
        if thread == self._request.thread:
            raise damage
        self._journal.report(thread, damage)

    def _read_open_turns(self) -> Iterator[dict[str, Any]]:
        """Yield the beginnings of the open turns, whichever reader recorded them."""
        root = self._request.thread
        threads = None if root is None else [root, *list_present_descendants(self._store, root)]
        for turn in list_open_turns(self._store, threads):
            if turn.started_after in self._journal.entered:
                yield from self._reader.read_enter(turn)

    def _begin_after(self, lines: list[Line], since: EventId) -> Iterator[dict[str, Any]]:
        place = self._locate(lines, since)
        if isinstance(place, int):
            yield from self._read_lines(lines[place:])
            return
        for index, line in enumerate(lines):
            if line.word == "moved" and line.commit == place.commit:
                try:
                    yield from self._read_rest(place)
                except StoreDamaged as error:
                    self._report_line(line.thread, line.commit, error)
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
        listed = [
            beside
            if beside and beside[0].thread == thread
            else self._list_older(thread, tip, least)
            for thread, tip in tips.items()
        ]
        # Sorted, not merged: a merge of 100,000 threads takes longer than it saves.
        if any(each.after for each in chain(*listed)):
            older = merge_transitions(listed)
        else:
            older = sorted(chain(*listed), key=lambda each: (each.time_s, each.thread))
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
            tip = tips.get(thread) if self._is_wanted(thread) else None
            older = [] if tip is None else list_new(self._store, thread, tip, known=None)
        except (NoSuchEvent, StoreDamaged) as error:
            if isinstance(error, StoreDamaged) and self._request.thread is not None:
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
            self._report_line(thread, tip, error)
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
                turn = describe_turn(Moment(read_snapshot(self._store, line.commit)), **line.told)
                events = self._reader.read_enter(turn)
            elif line.word == "moved":
                events = self._reader.read(line.commit, entered=self._journal.entered)
            else:
                return
        except StoreDamaged as error:
            self._report_line(line.thread, line.commit, error)
            return
        yield from events
