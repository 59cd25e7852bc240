"""Keeping the journal: each transition of the store becomes one line, whoever sees it first.

Owns: bringing the journal up to what the refs say, and one reader's copy of it.
Knows nothing of: events, from where on somebody wants to be told.
Always true: lines are only added, under the journal's lock; a thread that is damaged is told of
once, and the others go on. Where the journal may not be written, a reader keeps one for itself.
"""

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from uwf_git.commands.event_order import Seen, list_new, merge_seen
from uwf_git.commands.open_turns import list_open_turns
from uwf_git.engine.events import Entered
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.history import find_base
from uwf_git.store.journal import Journal, Line, hold_journal
from uwf_git.store.ref_watch import RefWatch, Tips
from uwf_git.store.refs import BadRef, Oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

OnTrouble = Callable[[StoreDamaged], None]

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}

_OWN = "-"
"""The name of a journal that is nowhere but here."""


class KeptJournal:
    """One reader's copy of the journal."""

    def __init__(self, store: Store, on_trouble: OnTrouble) -> None:
        self._store, self._on_trouble = store, on_trouble
        self._watch = RefWatch(store)
        self._name = ""
        self._end = 0
        # Where a thread is that was looked at, though the journal has it elsewhere.
        self._settled: dict[ThreadId, Oid] = {}
        self._troubles: set[str] = set()
        # Those that were read and nobody has taken yet.
        self._lines: list[Line] = []
        self.heads: dict[ThreadId, Oid] = {}
        """Where the journal has the threads."""

        self.entered: set[Oid] = set()
        """After which commits it has a turn that was seen to begin."""

        self.there: set[ThreadId] = set()
        """The threads that have a ref."""

    def take(self) -> list[Line]:
        """Give what was added since the last time; at the first time, the whole journal.

        Raises:
            OSError: the machine would not let it be written.
        """
        self._catch_up()
        lines, self._lines = self._lines, []
        return lines

    def _catch_up(self) -> None:
        """Bring the journal up to what the refs say, and read what others have brought."""
        with self._held() as journal:
            # Before the refs: a turn that ends in between is told of before its end.
            turns = list(list_open_turns(self._store, known=self.entered))
            tips = self._watch.look()
            if tips is not None:
                self.there = set(tips.heads)
                for ref in tips.bad:
                    self.tell_trouble(BadRef(ref))
            missed = self._load(journal, tips)
            new = self._find_new(tips.heads if tips else {}, self.heads, turns)
            if journal is not None and new:
                self._end = journal.append(new, self._end)
            self._take([*missed, *new])

    @contextmanager
    def _held(self) -> Iterator[Journal | None]:
        """Hold the journal; None if there can be none."""
        if not self._store.is_kept:
            yield None
            return
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
        """Read the journal on, or begin it; give what this reader would miss by another one."""
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
        # Somebody has deleted the journal under us: what it has now is not what we go on from.
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
        self, tips: Mapping[ThreadId, Oid], known: Mapping[ThreadId, Oid], turns: list[Entered]
    ) -> list[Line]:
        """Give the lines of what is there and not *known*, in order."""
        new: dict[ThreadId, list[Seen]] = {}
        for thread, tip in tips.items():
            if tip in {known.get(thread), self._settled.get(thread)}:
                continue
            self._settled[thread] = tip
            try:
                new[thread] = list_new(self._store, thread, tip, known=known.get(thread))
            except StoreDamaged as error:
                self.tell_trouble(error)
        opened = [turn for turn in turns if self._is_open(turn, new, known)]
        first = {turn.base: turn for turn in opened}
        lines = [_enter(turn) for turn in opened if not _is_among(turn, new)]
        for seen in merge_seen(new.values()):
            lines.append(Line("moved", seen.thread, seen.commit))
            if seen.commit in first:
                lines.append(_enter(first[seen.commit]))
        return lines

    def _is_open(
        self, turn: Entered, new: Mapping[ThreadId, list[Seen]], known: Mapping[ThreadId, Oid]
    ) -> bool:
        """Tell whether *turn* is still to be told of: what was left of it may lie there longer."""
        if turn.base in self.entered:
            return False
        if _is_among(turn, new):
            return True
        tip = known.get(turn.record.thread)
        try:
            return tip is not None and turn.base == find_base(
                self._store, read_snapshot(self._store, tip)
            )
        except StoreDamaged:
            return False

    def tell_trouble(self, error: StoreDamaged) -> None:
        """Tell of damage, once."""
        if error.message not in self._troubles:
            self._troubles.add(error.message)
            self._on_trouble(error)


def _known(heads: Mapping[ThreadId, Oid]) -> list[Line]:
    return [Line("known", thread, oid) for thread, oid in sorted(heads.items())]


def _enter(turn: Entered) -> Line:
    told = {"role": turn.role, "agent": turn.agent, "started_ms": turn.started_ms}
    return Line("enter", turn.record.thread, Oid(turn.base), json.dumps(told))


def _is_among(turn: Entered, new: Mapping[ThreadId, list[Seen]]) -> bool:
    return any(seen.commit == turn.base for seen in new.get(turn.record.thread, ()))
