"""`uwf watch`: the threads of a store, looked at again; without news a look reads no object."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.agents.run_files import find_last_output_ms
from uwf_git.commands.agent_run.running import Running, list_running
from uwf_git.commands.agent_run.runs import read_begun_turn
from uwf_git.commands.agent_run.step_dir import ReportedUsage
from uwf_git.commands.inspect.list import (
    Summary,
    list_lately_ended,
    order_statuses,
    summarize_thread,
    tell_standing,
    view_thread_row,
)
from uwf_git.commands.inspect.logs import find_run_dir, read_last_log_line, stamp_logs
from uwf_git.commands.split.family import Family
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, ThreadState, add_usage
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, list_threads
from uwf_git.store.threads.run_dir import RunDir
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.threads.watch import RefWatch

_LATELY_MS = 24 * 3600 * 1000
_MOST_ENDED = 50

_ORDER = order_statuses("running")


class WatchRequest(NamedTuple):
    roots: Sequence[ThreadId] = ()
    """Only these threads and their branches; none: all, and those that ended within a day."""

    environ: Mapping[str, str] = MappingProxyType({})
    """Its secrets are masked in logs."""


class AtWork(NamedTuple):
    role: str
    agent: str | None
    attempt: int
    since: int | None
    """In milliseconds since 1970."""


class ThreadWatch:
    """The rows of threads, kept up to date by `look`."""

    def __init__(self, store: Store, request: WatchRequest, *, now_ms: int) -> None:
        self._store, self._environ = store, request.environ
        self._families = [Family(store, root) for root in request.roots]
        self._roots = request.roots
        self._after_ms = now_ms - _LATELY_MS
        self._refs = RefWatch(store)
        self._heads: dict[ThreadId, Oid] = {}
        self._running: dict[ThreadId, Running] = {}
        self._summaries: dict[ThreadId, Summary] = {}
        self._works: dict[ThreadId, Work] = {}
        self._has_begun = False
        self._all: dict[ThreadId, dict[str, Any]] = {}

    def look(self) -> list[dict[str, Any]]:
        """Look again, and return the rows that changed: as `uwf thread list` has them."""
        running = {each.thread: each for each in list_running(self._store)}
        before, self._running = self._running, running
        moved = {each for each in {*before, *running} if _differ(before, running, each)}
        for thread in moved:
            self._works.pop(thread, None)
        moved |= self._find_moved()
        rows = [self._read(thread) for thread in sorted(moved)]
        # Known only now, of branches that are new.
        trunks = {trunk for each in moved for trunk in self._list_trunks(each)}
        rows += [self._read(thread) for thread in sorted(trunks - moved)]
        return [row for row in rows if row is not None]

    def list_rows(self) -> list[dict[str, Any]]:
        """Return the rows in the order in which they are shown."""
        rows = [row for thread, row in self._all.items() if self._is_shown(thread, row)]
        rows.sort(key=lambda row: str(row["thread"]), reverse=True)
        ranks = {status: rank for rank, status in enumerate(_ORDER)}
        return sorted(rows, key=lambda row: ranks.get(tell_standing(row, _ORDER), len(ranks)))

    def count(self) -> dict[str, int]:
        """Count the rows by their status, in the order in which they are shown."""
        counts = Counter(tell_standing(row, _ORDER) for row in self.list_rows())
        return {status: counts[status] for status in _ORDER if counts[status]}

    @property
    def is_over(self) -> bool:
        ends = (self._all.get(root, {}).get("status") in {None, *ENDED} for root in self._roots)
        return bool(self._roots) and all(ends)

    def summarize(self, row: dict[str, Any]) -> Summary:
        """Return the task of a row, and what was last; read once for each change."""
        thread = row["thread"]
        if thread not in self._summaries:
            self._summaries[thread] = summarize_thread(self._store, row)
        return self._summaries[thread]

    def find_work(self, thread: ThreadId) -> "Work | None":
        running = self._running.get(thread)
        if running is None or running.role is None:
            return None
        if thread not in self._works:
            self._works[thread] = Work(self._store, running, self._environ)
        return self._works[thread]

    def list_working_below(self, thread: ThreadId) -> list[str]:
        return [
            running.role
            for each, running in sorted(self._running.items())
            if running.role is not None and each != thread and thread in self._list_trunks(each)
        ]

    def _list_trunks(self, thread: ThreadId) -> list[ThreadId]:
        trunks: list[ThreadId] = []
        while thread in self._all and "branchOf" in self._all[thread]:
            thread = self._all[thread]["branchOf"]
            trunks.append(thread)
        return trunks

    def _find_moved(self) -> set[ThreadId]:
        tips = self._refs.look()
        if tips is None:
            return set()
        before, self._heads = self._heads, tips.heads
        if not self._has_begun:
            self._has_begun = True
            return self._find_first()
        bad = {ThreadId(ref.rpartition("/")[2]) for ref in tips.bad}
        for thread in self._all.keys() - self._heads.keys() - bad:
            del self._all[thread]
        return {each for each, oid in self._heads.items() if before.get(each) != oid}

    def _find_first(self) -> set[ThreadId]:
        """Return the threads to begin with: of those that have ended only the latest."""
        active = set(list_threads(self._store, archived=False))
        if self._roots:
            return active | {root for root in self._roots if root in self._heads}
        ended = list_lately_ended(self._store, after_ms=self._after_ms, limit=_MOST_ENDED)
        return active | {ThreadId(row["thread"]) for row in ended}

    def _read(self, thread: ThreadId) -> dict[str, Any] | None:
        """Read the row of *thread* again; return it if it is shown and has changed."""
        row = view_thread_row(self._store, None, thread)
        self._summaries.pop(thread, None)
        before = self._all.pop(thread, None)
        if row is None:
            return None
        self._all[thread] = row
        work = self.find_work(thread)
        if work is not None:
            row["atWork"] = work.view()._asdict()
        return row if row != before and self._is_shown(thread, row) else None

    def _is_shown(self, thread: ThreadId, row: dict[str, Any]) -> bool:
        if self._families:
            return any(thread in family for family in self._families)
        return row.get("branchOf") not in self._all


class Work:
    """The work of an agent; its files are read again only where they have changed."""

    def __init__(self, store: Store, running: Running, environ: Mapping[str, str]) -> None:
        self._store, self._running, self._environ = store, running, environ
        self._run: RunDir | None = None
        self._reported: ReportedUsage | None = None
        self._log: tuple[object, str] = ((), "")
        self._present: ThreadState | None = None
        with suppress(StoreDamaged):
            head = find_head(store, running.thread)
            if head is not None:
                self._present = read_snapshot(store, head.commit).get_present()

    def view(self) -> AtWork:
        run, present = self._find_run(), self._present
        begun = None if run is None else read_begun_turn(run)
        tries = present and present.begin_tries(begun.at if begun else None).attempts
        running = self._running
        return AtWork(running.role or "", running.agent, (tries or 0) + 1, running.since)

    def read_usage(self) -> dict[str, Any]:
        spent: dict[str, Any] = {} if self._present is None else dict(self._present.usage)
        self._find_run()
        return spent if self._reported is None else add_usage(spent, self._reported.read())

    def find_last_output_ms(self) -> int | None:
        """Return when the agent printed last, or else began, in milliseconds since 1970."""
        run = self._find_run()
        return None if run is None else find_last_output_ms(run.path)

    def read_log(self) -> str:
        run = self._find_run()
        stamp = () if run is None else stamp_logs(run)
        if run is not None and stamp != self._log[0]:
            self._log = (stamp, read_last_log_line(run, self._environ) or "")
        return self._log[1]

    def _find_run(self) -> RunDir | None:
        """Return the run of the turn, which begins a moment after the turn."""
        if self._run is None:
            with suppress(StoreDamaged):
                self._run = find_run_dir(self._store, self._running.thread)
            if self._run is not None:
                self._reported = ReportedUsage(self._run.step_dir)
        return self._run


def _differ(
    before: Mapping[ThreadId, Running], now: Mapping[ThreadId, Running], thread: ThreadId
) -> bool:
    old, new = before.get(thread), now.get(thread)
    return old is None or new is None or (old.role, old.since) != (new.role, new.since)
