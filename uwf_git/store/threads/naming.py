"""How people name threads: by ids, by beginnings of ids that can be copied, and `@`, the newest."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.names import TIME_SYMBOLS, ThreadId, parse_thread_prefix
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    NEWEST,
    BranchNotBegun,
    Head,
    NoSuchThread,
    find_head,
    get_head,
    list_threads,
)
from uwf_git.store.threads.history import Snapshot, read_snapshot

_MOST_DESCRIBED = 10
_LONGEST_TASK = 60
_NEWEST = re.compile("@([1-9][0-9]{0,8})?")
_FULL_LENGTH = 26


def _ambiguous_thread(text: str, matches: list[ThreadId], described: Sequence[str]) -> Refused:
    error = Refused(
        f"{len(matches)} threads begin with {text}: {name_some(matches)}",
        code="ambiguous-thread",
        hint="give more of the id",
        matches=matches,
    )
    error.lines = [f"{len(matches)} threads begin with {text}", *described]
    return error


def resolve_thread(store: Store, text: str) -> ThreadId:
    """Return the thread whose id is *text* or begins so; ``@`` is the newest, ``@2`` the next."""
    return resolve_head(store, text).thread


def resolve_head(store: Store, text: str) -> Head:
    """Return the head of the thread whose id is *text* or begins with it; as `resolve_thread`."""
    thread = parse_thread_id(text)
    try:
        return get_head(store, _resolve_prefix(store, text) if thread is None else thread)
    except NoSuchThread:
        _refuse_not_begun(store, text)
        raise


def parse_thread_id(text: str) -> ThreadId | None:
    """Return *text* if it is a whole thread id, whether or not the thread exists; else None."""
    if text.startswith(NEWEST):
        return None
    prefix = parse_thread_prefix(text)
    return ThreadId(prefix) if len(prefix) == _FULL_LENGTH else None


def _resolve_prefix(store: Store, text: str) -> ThreadId:
    if text.startswith(NEWEST):
        newest = find_newest(store, text)
        if newest is None:
            raise NoSuchThread(text)
        return newest
    prefix = parse_thread_prefix(text)
    # Active first, and without duplicates: a thread may be archived in between.
    threads = [*list_threads(store, archived=False), *list_threads(store, archived=True)]
    matches = [thread for thread in dict.fromkeys(threads) if thread.startswith(prefix)]
    if not matches:
        raise NoSuchThread(text)
    if len(matches) > 1:
        raise _ambiguous_thread(text, matches, describe_threads(store, matches))
    return matches[0]


def _refuse_not_begun(store: Store, text: str) -> None:
    """Raise an error if *text* names branches that nobody has begun here."""
    found = list_not_begun(store, text)
    if len(found) > 1:
        described = [f"{branch}  branch of {parent}" for branch, parent in found.items()]
        raise _ambiguous_thread(text, list(found), described)
    for branch, parent in found.items():
        raise BranchNotBegun(branch, parent)


class ShortIds:
    """The shortest unique beginning of each id, at least its time: new threads change none."""

    def __init__(self, threads: Iterable[str]) -> None:
        self._all = sorted(threads)

    def __contains__(self, thread: str) -> bool:
        place = bisect_left(self._all, thread)
        return place < len(self._all) and self._all[place] == thread

    def shorten(self, thread: str) -> str:
        """Return the short id of *thread*, which need not be among these ids."""
        place = bisect_left(self._all, thread)
        around = self._all[max(place - 1, 0) : place + 2]
        alike = max((_count_alike(thread, each) for each in around if each != thread), default=0)
        return thread[: max(alike + 1, TIME_SYMBOLS)]


def read_short_ids(store: Store, not_begun: Iterable[str] = ()) -> ShortIds:
    return ShortIds({*_list_all(store), *not_begun})


def find_newest(store: Store, text: str) -> ThreadId | None:
    """Return the thread that ``@`` (newest) or ``@2`` names, without branches of threads here."""
    named = _NEWEST.fullmatch(text)
    if named is None:
        return None
    return next(islice(_walk_newest(store), int(named[1] or 1) - 1, None), None)


def list_not_begun(store: Store, text: str) -> dict[ThreadId, ThreadId]:
    """Return the branches, and their threads, whose ids begin so and that have not begun here."""
    prefix = "" if text.startswith("@") else parse_thread_prefix(text)
    found: dict[ThreadId, ThreadId] = {}
    for thread in list_threads(store, archived=False) if prefix else ():
        snapshot = _read(store, thread)
        # A pause keeps the branches.
        if snapshot is None or snapshot.record.status not in {"split", "paused"}:
            continue
        with suppress(StoreDamaged):
            split = snapshot.get_present().split
            for child in () if split is None else split.children:
                if child.thread.startswith(prefix) and find_head(store, child.thread) is None:
                    found[child.thread] = thread
    return found


def describe_threads(store: Store, threads: Sequence[ThreadId]) -> list[str]:
    """Return a line for each of *threads*, as far as people read: short id, status, task."""
    short = read_short_ids(store)
    lines = []
    for thread in threads[:_MOST_DESCRIBED]:
        line = short.shorten(thread)
        snapshot = _read(store, thread)
        if snapshot is not None:
            line += f"  {snapshot.record.status:9}  {_find_task(snapshot)}"
        lines.append(line)
    left = len(threads) - _MOST_DESCRIBED
    return [*lines, f"and {left} more"] if left > 0 else lines


def _walk_newest(store: Store) -> Iterator[ThreadId]:
    for thread in sorted(_list_all(store), reverse=True):
        snapshot = _read(store, thread)
        trunk = None if snapshot is None else snapshot.get_trunk()
        if trunk is None or find_head(store, trunk) is None:
            yield thread


def _list_all(store: Store) -> set[ThreadId]:
    return {*list_threads(store, archived=False), *list_threads(store, archived=True)}


def _read(store: Store, thread: ThreadId) -> Snapshot | None:
    try:
        head = find_head(store, thread)
        snapshot = None if head is None else read_snapshot(store, head.commit)
        if snapshot is not None:
            snapshot.get_start()
    except StoreDamaged:
        return None
    return snapshot


def _find_task(snapshot: Snapshot) -> str:
    lines = str(snapshot.get_start().payload["prompt"]).strip().splitlines()
    return lines[0][:_LONGEST_TASK] if lines else ""


def _count_alike(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))
