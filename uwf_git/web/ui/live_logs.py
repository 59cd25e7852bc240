"""The logs that pages show now: read on while somebody asks for them, and forgotten after."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.inspect.logs import LogReader, LogRequest
from uwf_git.debug_log import debug
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store

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
