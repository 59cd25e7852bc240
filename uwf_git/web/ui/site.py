"""What all routes share: the store's place, the masks, the changes, what is kept meanwhile."""

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from uwf_git.commands.agent_run.running import stamp_work
from uwf_git.commands.inspect.logs import LogReader, LogRequest
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.inspect.story import Mask, StoryReader, Telling, walk_entries
from uwf_git.commands.lifecycle.start import Here
from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, UwfError
from uwf_git.library.values import Place
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import NotAStore, Store, find_git_dir
from uwf_git.store.threads.heads import Head, find_head
from uwf_git.store.threads.watch import RefWatch

# The logs that pages show now: read on while somebody asks for them, and forgotten after.

_FIRST = 500
_MOST_KEPT = 5_000
_MOST_SENT = 2_000
_LONGEST_LINE = 4_000
_PATIENCE_S = 30.0
_MOST_LOGS = 16


class _Line(NamedTuple):
    number: int
    source: str
    text: str


class _LiveLog:
    def __init__(self, store: Store, thread: ThreadId, environ: Mapping[str, str]) -> None:
        self._reader = LogReader(store, LogRequest(thread, _FIRST, environ))
        self._lines: deque[_Line] = deque(maxlen=_MOST_KEPT)
        self.following = 1
        self.asked_at = time.monotonic()

    def read_on(self) -> None:
        """Read what came since the last call."""
        for piece in self._reader.read_new():
            for line in piece.lines:
                self._lines.append(_Line(self.following, piece.source, line[:_LONGEST_LINE]))
                self.following += 1

    def view(self, after: int) -> dict[str, Any]:
        """Return the lines from number *after* on."""
        self.asked_at = time.monotonic()
        shown = [each for each in self._lines if each.number >= after]
        sent = shown[:_MOST_SENT]
        following = sent[-1].number + 1 if sent else self.following
        is_cut = bool(shown) and after > 0 and shown[0].number > after
        return {
            "lines": [{"n": n, "source": source, "text": text} for n, source, text in sent],
            "next": following,
            "isRunning": not self._reader.is_over(),
            "isCut": is_cut,
        }

    def close(self) -> None:
        self._reader.close()


class LiveLogs:
    """The logs that were asked for in the last half minute; several threads may ask."""

    def __init__(self, open_store: Callable[[], Store], environ: Mapping[str, str]) -> None:
        self._open_store, self._environ = open_store, environ
        self._logs: dict[ThreadId, _LiveLog] = {}
        self._lock = threading.Lock()

    def read(self, thread: ThreadId, after: int) -> dict[str, Any]:
        """Return the lines of *thread* from number *after* on; 0: the last lines."""
        with self._lock:
            log = self._logs.get(thread)
            if log is None:
                log = _LiveLog(self._open_store(), thread, self._environ)
                self._logs[thread] = log
                for oldest in list(self._logs)[:-_MOST_LOGS]:
                    self._logs.pop(oldest).close()
            log.read_on()
            return log.view(after)

    def read_on(self) -> dict[ThreadId, int]:
        """Read all of them on; return the number of the line that comes next in each."""
        with self._lock:
            for thread, log in list(self._logs.items()):
                problem = _read_on(log)
                if problem is not None:
                    debug("5Q2D8XJR", "a log is let go", thread=thread, problem=problem)
                    self._logs.pop(thread).close()
            return {thread: log.following for thread, log in self._logs.items()}


def _read_on(log: _LiveLog) -> str | None:
    """Read *log* on; return why it is let go, or None."""
    if time.monotonic() - log.asked_at > _PATIENCE_S:
        return "nobody looks at it any more"
    try:
        log.read_on()
    except (UwfError, OSError) as error:
        return str(error)
    return None


# The events of the threads that were looked at last, kept while their tips stay.

_STORIES_MOST_KEPT = 6

Entries = list[dict[str, Any]]


class _Kept(NamedTuple):
    entries: Entries
    tips: dict[ThreadId, Oid | None]


class Stories:
    """The entries of some threads; several Python threads may ask."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kept: dict[ThreadId, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, store: Store, head: Head) -> Entries:
        """Return the entries of the thread of *head*, oldest first."""
        with self._lock:
            # Tabs that ask at once wait for the first, and share what it has read.
            kept = self._kept.pop(head.thread, None)
            if kept is None or any(
                _find_tip(store, each) != tip for each, tip in kept.tips.items()
            ):
                kept = self._read_kept(store, head)
            self._kept[head.thread] = kept
            for oldest in list(self._kept)[:-_STORIES_MOST_KEPT]:
                del self._kept[oldest]
        return kept.entries

    def find(self, store: Store, head: Head, commit: str) -> dict[str, Any]:
        for entry in walk_entries(self.read(store, head)):
            if entry.get("commit") == commit:
                return entry
        raise Refused(
            f"thread {head.thread} has no event {commit[:40]!r}",
            code="no-such-entry",
            hint=f"`uwf thread read {head.thread}` shows its events",
            thread=head.thread,
        )

    def _read_kept(self, store: Store, head: Head) -> _Kept:
        reader = StoryReader(store, Telling(self._mask))
        entries = reader.read(head.thread, head.commit, through_forks=True)
        branches = {
            ThreadId(branch["thread"])
            for entry in walk_entries(entries)
            for branch in entry.get("branches", ())
        }
        tips = {each: _find_tip(store, each) for each in branches}
        return _Kept(entries, {**tips, head.thread: head.commit})


def _find_tip(store: Store, thread: ThreadId) -> Oid | None:
    head = find_head(store, thread)
    return None if head is None else head.commit


class Site(NamedTuple):
    place: Place
    new_thread_id: Callable[[], ThreadId]
    mask: Mask
    overview: Overview
    stories: Stories
    logs: LiveLogs
    read_at: Callable[[], str]
    """Returns the number of the newest change that was seen."""

    def open(self) -> Store:
        return self.place.open()

    def here(self, store: Store) -> Here:
        return Here(store, self.place.cwd, self.place.agent)


# Threads for what blocks: reading and writing the store.
#
# `uwf ui` ends by os._exit, without waiting for a call that still waits itself (for a killed
# agent, say).
# What such a call records is whole or not there, as after a crash.

# What changed in the store, for all open pages: one watch for the server, and a number a change.
#
# A page that comes back says which number it has seen. While no page is open nothing is looked at;
# the next page finds what changed.

Answer = TypeVar("Answer")


def _too_busy() -> Conflict:
    return Conflict("the server has too much to do", code="too-busy", hint="try again in a moment")


class Workers:
    """Some threads, and the calls that wait for one."""

    def __init__(self, count: int, *, most_waiting: int = 500) -> None:
        self._pool = ThreadPoolExecutor(count)
        self._free = threading.Semaphore(count + most_waiting)

    async def run(self, function: Callable[[], Answer]) -> Answer:
        if not self._free.acquire(blocking=False):
            raise _too_busy()
        work = self._pool.submit(function)
        # Whoever asked may be gone before: the thread is at work until it is done.
        work.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(work)


_TICK_S = 0.1
_BEAT_S = 15.0
_LOOKS_A_STAMP = 5
_MOST_CHANGES = 1000
_MOST_TOLD = 1000
MOST_STREAMS = 32


class _Change(NamedTuple):
    number: int
    threads: frozenset[ThreadId]


class _Known(NamedTuple):
    number: int
    logs: dict[ThreadId, int]
    problem: str | None


class StoreLook:
    """Looks for what changed in a store since the last look; it reads no objects."""

    def __init__(self, store: Store) -> None:
        self._store, self._watch = store, RefWatch(store)
        self._heads: dict[ThreadId, Any] | None = None
        self._work: dict[ThreadId, tuple[object, ...]] = {}
        self._looks = 0

    def look(self) -> frozenset[ThreadId]:
        """Return the threads that have another tip, have gone, or are worked on otherwise."""
        if find_git_dir(self._store.path) is None:
            raise NotAStore(self._store.path, "does not exist")
        changed: set[ThreadId] = set()
        tips = self._watch.look()
        if tips is not None:
            # An archived thread may keep its commit.
            heads = {each: (oid, each in tips.ended) for each, oid in tips.heads.items()}
            before = heads if self._heads is None else self._heads
            changed |= {each for each, _tip in heads.items() ^ before.items()}
            self._heads = heads
        if self._looks % _LOOKS_A_STAMP == 0:
            work = stamp_work(self._store)
            changed |= {
                each for each in work.keys() | self._work.keys()
                if work.get(each) != self._work.get(each)
            }  # fmt: skip
            self._work = work
        self._looks += 1
        return frozenset(changed)


class Changes:
    """The changes that were seen, and the streams that tell them; it lives in the event loop."""

    def __init__(self, store: Store, list_logs: Callable[[], dict[ThreadId, int]]) -> None:
        """Create it; *list_logs* reads the logs that pages show, and returns their next lines."""
        self._store_look, self._list_logs = StoreLook(store), list_logs
        self._workers = Workers(1)
        self._start = secrets.token_hex(3)
        self._number = 0
        self._seen: deque[_Change] = deque(maxlen=_MOST_CHANGES)
        self._logs: dict[ThreadId, int] = {}
        self._problem: str | None = None
        self._changed = asyncio.Condition()
        self._open: list[object] = []
        self._watching: asyncio.Task[None] | None = None
        self.is_over = False

    @property
    def at(self) -> str:
        return f"{self._start}-{self._number}"

    async def close(self) -> None:
        self.is_over = True
        async with self._changed:
            self._changed.notify_all()

    async def follow(self, since: str | None) -> AsyncIterator[dict[str, Any]]:
        """Yield what changed after *since*, and what changes; it ends when the server does."""
        me = object()
        self._open.append(me)
        del self._open[:-MOST_STREAMS]
        async with self._changed:
            self._changed.notify_all()
        try:
            await self._look()
            number = self._find_number(since)
            # Before anything is told: what changes while it is sent comes after it.
            told = _Known(self._number if number is None else number, {}, None)
            self._watch()
            yield {"type": "hello", "at": self.at, "reset": number is None}
            while not self.is_over and me in self._open:
                now = self._known
                for line in self._tell(told):
                    yield line
                told = now
                if not await self._wait(me, told):
                    yield {"type": "beat"}
            yield {"type": "bye"}
        finally:
            if me in self._open:
                self._open.remove(me)

    @property
    def _known(self) -> _Known:
        return _Known(self._number, self._logs, self._problem)

    async def _wait(self, me: object, told: _Known) -> bool:
        """Wait until there is something to tell; return whether there is."""

        def has_news() -> bool:
            return self.is_over or me not in self._open or told != self._known

        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(has_news), _BEAT_S)
            except TimeoutError:
                return False
        return True

    def _find_number(self, since: str | None) -> int | None:
        """Return the number of *since*; None if what came after it is not known."""
        start, _, number = (since or "").partition("-")
        if start != self._start or not number.isdecimal() or len(number) > 18:  # noqa: PLR2004 (no number grows longer)
            return None
        first = self._number - len(self._seen)
        return int(number) if first <= int(number) <= self._number else None

    def _tell(self, told: _Known) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        threads = frozenset(
            thread for each in self._seen if each.number > told.number for thread in each.threads
        )
        if len(threads) > _MOST_TOLD:
            lines.append({"type": "threads", "at": self.at, "threads": [], "all": True})
        elif threads:
            lines.append({"type": "threads", "at": self.at, "threads": sorted(threads)})
        if self._problem != told.problem:
            lines.append({"type": "store", "problem": self._problem})
        for thread, following in self._logs.items():
            if told.logs.get(thread) != following:
                lines.append({"type": "log", "thread": thread, "next": following})
        return lines

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        while self._open and not self.is_over:
            await asyncio.sleep(_TICK_S)
            await self._look()

    async def _look(self) -> None:
        before = self._known
        try:
            threads, self._logs = await self._workers.run(
                lambda: (self._store_look.look(), self._list_logs())
            )
            self._problem = None
            if threads:
                self._number += 1
                self._seen.append(_Change(self._number, threads))
        except (UwfError, OSError) as error:
            # A store that was moved, or a broken packed-refs, may come back.
            self._problem = str(error)
            debug("3V7KQ0TD", "the store cannot be watched", problem=self._problem)
        if self._known == before:
            return
        async with self._changed:
            self._changed.notify_all()
