"""The threads of a store in groups: what needs a person, what runs, the others, what has ended.

For a page that is read again and again: a row is kept while its thread's tip stays, so that reading
costs only the changed rows. Ended threads, of which a store may have 100,000, are looked at as far
as they are asked for.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from typing import Any, NamedTuple

from uwf_git.agents.run_files import find_last_output_ms
from uwf_git.commands.agent_run.runs import (
    ReportedUsage,
    Running,
    find_running,
    list_running,
    read_begun_turn,
)
from uwf_git.commands.family import Family, list_present_descendants
from uwf_git.commands.inspect.list import (
    DAMAGED,
    IN_GROUP,
    Group,
    ListRequest,
    Summary,
    group_active,
    list_lately_ended,
    order_statuses,
    summarize_thread,
    tell_standing,
    view_thread_row,
)
from uwf_git.commands.inspect.logs import find_run_dir, read_last_log_line, stamp_logs
from uwf_git.commands.inspect.story import Mask, make_mask, mask_json
from uwf_git.commands.turn.flow import add_branches
from uwf_git.errors import BadUsage, StoreDamaged
from uwf_git.model.limits import find_cost
from uwf_git.model.names import Oid, ThreadId, is_thread_id, read_time_ms
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED, ThreadState, add_usage
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, list_threads
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.local_files import RUNNING, RunDir, list_possibly_active
from uwf_git.store.threads.watch import RefWatch, Tips
from uwf_git.store.workflows import list_names

GROUPS: tuple[Group, ...] = tuple(IN_GROUP)
SHOWN = {"active": GROUPS[:3], "ended": GROUPS[3:], "all": GROUPS}

_MOST_KEPT = 20_000
_MOST_LOOKED_AT = 5_000
_MOST_CHILDREN = 1_000
_SEARCHED = (
    "thread", "title", "workflow", "said", "question", "error", "role", "status", "branchStatus",
)  # fmt: skip


class Wanted(NamedTuple):
    show: str = "active"
    """``active``, ``ended`` or ``all``."""

    workflow: str | None = None
    search: str = ""
    """Words that all occur in a row."""

    status: str | None = None
    since_ms: int | None = None
    """When a row changed at the earliest, in milliseconds since 1970."""

    least_cost: float | None = None

    after: str | None = None
    """The cursor of the rows before."""

    most: int = 100


class _Kept(NamedTuple):
    tip: Oid
    row: dict[str, Any] | None
    """None: a branch, which the row of its trunk includes."""

    changes: bool


class Overview:
    """The threads of one store; several Python threads may ask."""

    def __init__(self, store: Store, environ: Mapping[str, str]) -> None:
        self._watch = RefWatch(store)
        self._mask: Mask = make_mask(environ)
        self._tips = Tips({})
        self._kept: dict[ThreadId, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, store: Store, wanted: Wanted) -> dict[str, Any]:
        """Return the rows that *wanted* selects, and the size of each group."""
        after = _parse_cursor(wanted.after)
        with self._lock:
            active = self._read_active(store)
            groups = SHOWN[wanted.show]
            rows = [row for row in active if row["group"] in groups and _is_wanted(row, wanted)]
            later = [row for row in rows if _place(row) > after]
            shown, following = later[: wanted.most], None
            matching: int | None = len(rows)
            if len(later) > wanted.most:
                following = _cursor(shown[-1])
            elif "ended" in groups:
                matching = None
                shown, following = self._add_ended(store, wanted, after, shown)
            grouped = Counter(row["group"] for row in active)
            counts = {each: grouped[each] for each in GROUPS} | {"ended": len(self._tips.ended)}
            workflows = {row["workflow"] for row in active if row["workflow"]}
        return {
            "rows": shown,
            "next": following,
            "counts": counts,
            "matching": matching,
            "workflows": sorted(workflows.union(list_names(store))),
        }

    def list_children(
        self, store: Store, parent: ThreadId, *, until_ms: int
    ) -> list[dict[str, Any]]:
        """Return the rows of the threads that agents of *parent* started, oldest first.

        Of ended threads, those that began before *until_ms*, when *parent* changed last; 1,000
        threads after it are looked at.
        """
        with self._lock:
            rows = self._read_active(store)
            # The time is cut to seconds.
            last_ms = until_ms + 1000
            later = sorted(each for each in self._tips.ended if each > parent)
            near = takewhile(lambda each: read_time_ms(each) <= last_ms, later)
            rows += self._read_rows(store, islice(near, _MOST_CHILDREN))
        children = [row for row in rows if row["parent"] == parent]
        return sorted(children, key=lambda row: str(row["thread"]))

    def _read_active(self, store: Store) -> list[dict[str, Any]]:
        self._tips = self._watch.look() or self._tips
        heads, ended = self._tips.heads, self._tips.ended
        for gone in self._kept.keys() - heads.keys():
            del self._kept[gone]
        active = (thread for thread in heads if thread not in ended)
        rows = [*self._read_rows(store, active), *map(_view_bad, self._tips.bad)]
        return sorted(rows, key=_place)

    def _read_rows(self, store: Store, threads: Iterator[ThreadId]) -> list[dict[str, Any]]:
        at_work = set(list_possibly_active(store))
        found = []
        for thread in threads:
            tip, kept = self._tips.heads[thread], self._kept.get(thread)
            if kept is None or kept.tip != tip or kept.changes or thread in at_work:
                if len(self._kept) > _MOST_KEPT:
                    self._kept.clear()
                kept = self._kept[thread] = self._read_row(store, thread, tip)
            if kept.row is not None:
                found.append(kept.row)
        return found

    def _read_row(self, store: Store, thread: ThreadId, tip: Oid) -> _Kept:
        row = view_thread_row(store, None, thread, with_branches=False)
        if row is None:
            # Of a branch, the row of its trunk tells.
            return _Kept(tip, None, changes=False)
        view = _view(store, row, tip, is_ended=thread in self._tips.ended)
        masked = mask_json(view, self._mask)
        # The trunk of a branch may come after the branch.
        changes = view["status"] in {RUNNING, DAMAGED} or bool(
            view["branches"] or "branchOf" in row
        )
        return _Kept(tip, masked, changes)

    def _add_ended(
        self, store: Store, wanted: Wanted, after: tuple[int, str], shown: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], str | None]:
        rank = GROUPS.index("ended")
        last = _cursor(shown[-1]) if shown else None
        ended = sorted(self._tips.ended, reverse=True)
        later = (each for each in ended if (rank, _invert(each)) > after)
        for looked, thread in enumerate(later):
            if len(shown) == wanted.most or looked == _MOST_LOOKED_AT:
                return shown, last
            rows = self._read_rows(store, iter((thread,)))
            shown += [row for row in rows if _is_wanted(row, wanted)]
            last = f"{rank}.{thread}"
        return shown, None


def _view(store: Store, row: dict[str, Any], tip: Oid, *, is_ended: bool) -> dict[str, Any]:
    waiting = row.get("waiting") or {}
    running = find_running(store, row["thread"]) if row["status"] == RUNNING else None
    # At the end of a limit it goes on by itself, or by `--wait`.
    own = set() if row["status"] == "waiting" and "until" in waiting else {row["status"]}
    return {
        "thread": row["thread"],
        "group": "ended" if is_ended else group_active(own.union(row.get("branches") or ())),
        "status": row["status"],
        **_read_account(store, tip),
        "workflow": row.get("workflowName"),
        "said": row.get("said"),
        "role": waiting.get("role") if running is None else running.role,
        "question": row.get("question"),
        "until": waiting.get("until"),
        "error": row.get("error"),
        "updated": row.get("lastUpdateTime"),
        "since": None if running is None else running.since,
        "branches": row.get("branches"),
        "branchStatus": row.get("branchStatus"),
        "parent": row.get("parentThread"),
    }


def _read_account(store: Store, tip: Oid) -> dict[str, Any]:
    """Return the title of a thread, and what it and its branches have taken so far."""
    with suppress(StoreDamaged):
        snapshot = read_snapshot(store, tip)
        spent = add_branches(store, snapshot, snapshot.get_present())
        return {
            "title": first_line(str(snapshot.get_start().payload["prompt"])),
            "steps": spent.depth,
            "costUsd": find_cost(spent.usage),
            "workMs": spent.execution_ms,
        }
    return dict.fromkeys(("title", "steps", "costUsd", "workMs"))


def _view_bad(ref: str) -> dict[str, Any]:
    row = {"thread": ref.rpartition("/")[2], "status": DAMAGED, "error": f"{ref} names no commit"}
    return {**dict.fromkeys(_SEARCHED), **row, "group": "needs", "updated": None, "parent": None}


def _is_wanted(row: dict[str, Any], wanted: Wanted) -> bool:
    if wanted.workflow and row["workflow"] != wanted.workflow:
        return False
    if wanted.status and wanted.status != (row["branchStatus"] or row["status"]):
        return False
    if wanted.since_ms is not None and (row["updated"] or 0) < wanted.since_ms:
        return False
    if wanted.least_cost is not None and (row.get("costUsd") or 0) < wanted.least_cost:
        return False
    if not wanted.search:
        return True
    text = " ".join(str(row[name]) for name in _SEARCHED if row.get(name)).casefold()
    return all(word in text for word in wanted.search.casefold().split())


def _invert(thread: str) -> str:
    """Return a text that sorts newest first."""
    return "".join(chr(0x7F - ord(each)) for each in thread)


def _place(row: dict[str, Any]) -> tuple[int, str]:
    return GROUPS.index(row["group"]), _invert(row["thread"])


def _cursor(row: dict[str, Any]) -> str:
    return f"{GROUPS.index(row['group'])}.{row['thread']}"


def _parse_cursor(text: str | None) -> tuple[int, str]:
    if text is None:
        return (-1, "")
    rank, _, thread = text.partition(".")
    if rank not in {"0", "1", "2", "3"} or not is_thread_id(thread):
        raise BadUsage(
            f"{text[:60]!r} is no cursor of a list",
            code="bad-cursor",
            hint="begin the list anew, without `after`",
        )
    return int(rank), _invert(thread)


# `uwf watch`: the threads of a store, looked at again; without news a look reads no object.

_LATELY_MS = 24 * 3600 * 1000
_MOST_ENDED = 50

_ORDER = order_statuses("running")


class AtWork(NamedTuple):
    role: str
    agent: str | None
    attempt: int
    since: int | None
    """In milliseconds since 1970."""


class ThreadWatch:
    """The rows of *roots* and their branches, kept up to date by `look`.

    Without *roots* of all threads, and those that ended within a day. The secrets of *environ* are
    masked in logs.
    """

    def __init__(
        self, store: Store, roots: Sequence[ThreadId], environ: Mapping[str, str], *, now_ms: int
    ) -> None:
        self._store, self._environ = store, environ
        self._families = [Family(store, root) for root in roots]
        self._roots = roots
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
        before = {(each.thread, each.role, each.since) for each in self._running.values()}
        self._running = {each.thread: each for each in list_running(self._store)}
        now = {(each.thread, each.role, each.since) for each in self._running.values()}
        moved = {thread for thread, _role, _since in before ^ now}
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
            # Of the threads that have ended only the latest.
            active = set(list_threads(self._store, archived=False))
            if self._roots:
                roots = {root for root in self._roots if root in self._heads}
                below = (list_present_descendants(self._store, root) for root in roots)
                return active.union(roots, *below)
            lately = ListRequest(after_ms=self._after_ms, limit=_MOST_ENDED)
            ended = list_lately_ended(self._store, lately)
            return active | {ThreadId(row["thread"]) for row in ended}
        bad = {ThreadId(ref.rpartition("/")[2]) for ref in tips.bad}
        for thread in self._all.keys() - self._heads.keys() - bad:
            del self._all[thread]
        return {each for each, oid in self._heads.items() if before.get(each) != oid}

    def _read(self, thread: ThreadId) -> dict[str, Any] | None:
        """Read the row of *thread* again; return it if it is shown and has changed."""
        row = view_thread_row(self._store, None, thread)
        self._summaries.pop(thread, None)
        before = self._all.pop(thread, None)
        if row is None:
            return None
        self._all[thread] = row
        if (work := self.find_work(thread)) is not None:
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
            if (head := find_head(store, running.thread)) is not None:
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
