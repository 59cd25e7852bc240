"""Read the journal, and append a line for each transition and open turn that it lacks.

Every reader appends, under the journal's lock. A reader that may not write keeps its own in memory.
"""

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from uwf_git.commands.events.open_turns import list_open_turns
from uwf_git.commands.events.order import OrderedTransition, list_new, merge_transitions
from uwf_git.engine.events import TurnStarted
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import BadRef
from uwf_git.store.store import Store
from uwf_git.store.threads.journal import Journal, Line, hold_journal
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.threads.watch import RefWatch, Tips

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
        # The tips that were examined, though the journal has another one for the thread.
        self._examined: dict[ThreadId, Oid] = {}
        self._reported: set[str] = set()
        # Read, and not yet taken.
        self._lines: list[Line] = []
        self.heads: dict[ThreadId, Oid] = {}
        """The newest commit of each thread in the journal."""

        self.entered: set[Oid] = set()
        """The commits after which the journal has an ``enter`` line."""

        self.threads: set[ThreadId] = set()
        """The threads that have a ref."""

    def take(self) -> list[Line]:
        """Return the lines since the last call; the first call returns the whole journal.

        Raises:
            OSError: the journal cannot be written, for another reason than permissions.
        """
        self._catch_up()
        lines, self._lines = self._lines, []
        return lines

    def _catch_up(self) -> None:
        """Read the lines that other readers appended, and append what is new in the refs."""
        with self._held() as journal:
            # Before the refs, so that a turn that ends in between begins before its end.
            turns = list(list_open_turns(self._store, known=self.entered))
            tips = self._watch.look()
            if tips is not None:
                self.threads = set(tips.heads)
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
        try:
            held = hold_journal(self._store)
            journal = held.__enter__()
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
            yield None
            return
        try:
            yield journal
        finally:
            held.__exit__(None, None, None)

    def _load(self, journal: Journal | None, tips: Tips | None) -> list[Line]:
        """Read the journal on, or begin it.

        Return the lines that this reader lacks if the journal was replaced since its last read.
        """
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
