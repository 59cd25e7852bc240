"""The threads of a store in groups: what needs a person, what runs, the others, what has ended.

For a page that is read again and again: a row is kept while its thread's tip stays, so that reading
costs only the changed rows. Ended threads, of which a store may have 100,000, are looked at as far
as they are asked for.
"""

import threading
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.activity import RUNNING, list_possibly_active
from uwf_git.commands.agent_run.running import find_running
from uwf_git.commands.inspect.excerpt import Mask, make_mask, mask_json
from uwf_git.commands.inspect.list import DAMAGED, IN_GROUP, Group, group_active, view_thread_row
from uwf_git.commands.turn.limits import add_branches
from uwf_git.errors import BadUsage, StoreDamaged
from uwf_git.model.event_words import first_line
from uwf_git.model.limits import find_cost
from uwf_git.model.names import ThreadId, is_thread_id, read_time_ms
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.divergence import RemoteHeads
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.threads.watch import RefWatch, Tips
from uwf_git.store.workflows.registry import list_names

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
            counts = dict.fromkeys(GROUPS, 0)
            for row in active:
                counts[row["group"]] += 1
            counts["ended"] = len(self._tips.ended)
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
        return sorted(
            (row for row in rows if row["parent"] == parent), key=lambda row: str(row["thread"])
        )

    def _read_active(self, store: Store) -> list[dict[str, Any]]:
        self._tips = self._watch.look() or self._tips
        heads, ended = self._tips.heads, self._tips.ended
        for gone in self._kept.keys() - heads.keys():
            del self._kept[gone]
        active = (thread for thread in heads if thread not in ended)
        rows = [*self._read_rows(store, active), *map(_view_bad, self._tips.bad)]
        return sorted(rows, key=_place)

    def _read_rows(self, store: Store, threads: Iterator[ThreadId]) -> list[dict[str, Any]]:
        at_work, remotes = set(list_possibly_active(store)), RemoteHeads(store)
        found = []
        for thread in threads:
            tip, kept = self._tips.heads[thread], self._kept.get(thread)
            if kept is None or kept.tip != tip or kept.changes or thread in at_work:
                if len(self._kept) > _MOST_KEPT:
                    self._kept.clear()
                kept = self._kept[thread] = self._read_row(store, remotes, thread, tip)
            if kept.row is not None:
                found.append(kept.row)
        return found

    def _read_row(self, store: Store, remotes: RemoteHeads, thread: ThreadId, tip: Oid) -> _Kept:
        row = view_thread_row(store, remotes, thread, with_branches=False)
        if row is None:
            # Whether its trunk is here may change.
            return _Kept(tip, None, changes=False)
        view = _view(store, row, tip, is_ended=thread in self._tips.ended)
        masked = mask_json(view, self._mask)
        changes = view["status"] in {RUNNING, DAMAGED} or bool(view["branches"])
        return _Kept(tip, masked, changes)

    def _list_ended(self) -> list[ThreadId]:
        return sorted(self._tips.ended, reverse=True)

    def _add_ended(
        self, store: Store, wanted: Wanted, after: tuple[int, str], shown: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], str | None]:
        rank = GROUPS.index("ended")
        last = _cursor(shown[-1]) if shown else None
        later = (each for each in self._list_ended() if (rank, _invert(each)) > after)
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
    return {
        "thread": row["thread"],
        "group": "ended" if is_ended else _find_group(row),
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
        "diverged": bool(row.get("diverged")),
    }


def _read_account(store: Store, tip: Oid) -> dict[str, Any]:
    """Return the title of a thread, and what it and its branches have taken so far."""
    try:
        snapshot = read_snapshot(store, tip)
        spent = add_branches(store, snapshot, snapshot.get_present())
        return {
            "title": first_line(str(snapshot.get_start().payload["prompt"])),
            "steps": spent.depth,
            "costUsd": find_cost(spent.usage),
            "workMs": spent.execution_ms,
        }
    except StoreDamaged:
        return dict.fromkeys(("title", "steps", "costUsd", "workMs"))


def _view_bad(ref: str) -> dict[str, Any]:
    row = {"thread": ref.rpartition("/")[2], "status": DAMAGED, "error": f"{ref} names no commit"}
    return {**dict.fromkeys(_SEARCHED), **row, "group": "needs", "updated": None, "parent": None}


def _find_group(row: dict[str, Any]) -> Group:
    # At the end of a limit it goes on by itself, or by `--wait`.
    waits_for_limit = row["status"] == "waiting" and "until" in row.get("waiting", {})
    own = () if waits_for_limit else (row["status"],)
    return group_active({*own, *(row.get("branches") or {})})


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
