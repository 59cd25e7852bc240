"""What all routes share: the store's place, the masks, and what is kept between requests."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.inspect.logs import LogReader, LogRequest
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.inspect.story import Mask, StoryReader, Telling, walk_entries
from uwf_git.commands.lifecycle.start import Here
from uwf_git.debug_log import debug
from uwf_git.errors import Refused, UwfError
from uwf_git.library.values import Place
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, find_head

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
