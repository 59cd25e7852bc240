"""`uwf thread logs`: what was said while a thread was at work, and is being said.

Owns: which logs a thread has, and following them from step to step.
Knows nothing of: where they are shown. Always true: keys are masked, whoever logged them; the
log of a step that is under way is read from its file, and nobody who writes it notices.

    what a background driver says       <git dir>/uwf/logs/<thread>.log, kept until the thread goes
    what an agent that is at work says  the run folder of its step, gone when the step is recorded
    what an agent said that failed      in its Attempt node, for ever
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from uwf_git.agents.spool import STDERR
from uwf_git.commands.growing_file import GrowingFile
from uwf_git.commands.log_lines import CONTEXT_BYTES, LogLines
from uwf_git.commands.play_agent import find_player
from uwf_git.commands.running import is_at_work
from uwf_git.commands.step_view import view_attempt
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import find_head, get_head, resolve_thread
from uwf_git.store.history import find_base, walk_history
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import find_driver
from uwf_git.store.thread_log import log_path

DRIVER = "background driver"

_TICK_S = 0.05

# A thread that is ready and at rest may be between two calls of `uwf thread step`.
_PATIENCE_S = 1.0


class LogRequest(NamedTuple):
    """Which logs are asked for."""

    thread: str
    """An id, or a beginning that no other thread has."""

    last: int | None = None
    """Only so many of the newest lines of what is there already."""

    secrets: Sequence[str] = ()
    """What is masked besides all that looks like a key."""


class LogPiece(NamedTuple):
    """Some lines of a log."""

    source: str
    """Whose they are, in words."""

    lines: list[str]
    """Without their ends; controls are as they were written."""


def read_logs(store: Store, request: LogRequest) -> Iterator[LogPiece]:
    """Give what is logged of the thread that is meant, oldest first.

    That is the log of its background driver and of the agent that is at work; if there is
    neither, what the last agent that failed had said.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread is meant.
        StoreDamaged: it cannot be read.
    """
    thread = get_head(store, resolve_thread(store, request.thread)).thread
    with closing(_Tails(store, thread, request)) as tails:
        if tails.are_none:
            yield from _read_kept(store, thread, request)
        yield from tails.read_new()
        yield from tails.end()


def follow_logs(store: Store, request: LogRequest) -> Iterator[LogPiece]:
    """Give what is logged, and what comes, until nobody is at work on the thread any more.

    Raises:
        As ``read_logs``.
    """
    thread = get_head(store, resolve_thread(store, request.thread)).thread
    with closing(_Tails(store, thread, request)) as tails:
        if tails.are_none:
            yield from _read_kept(store, thread, request)
        busy_at = time.monotonic()
        while True:
            # Asked first: what was written until then is read below.
            is_over = not is_at_work(store, thread)
            yield from tails.look()
            yield from tails.read_new()
            if not is_over:
                busy_at = time.monotonic()
            elif time.monotonic() - busy_at >= _patience_s(store, thread):
                break
            time.sleep(_TICK_S)
        yield from tails.end()


def find_status(store: Store, text: str) -> str:
    """Give the status of the thread that *text* means, as it is recorded.

    Raises:
        As ``read_logs``.
    """
    head = get_head(store, resolve_thread(store, text))
    return read_snapshot(store, head.commit).record.status


class _Tail:
    """A log and where it has been read to."""

    def __init__(self, source: str, path: str, secrets: Sequence[str]) -> None:
        self._source = source
        self._file = GrowingFile(path)
        self._secrets = secrets
        self._lines = LogLines(secrets)

    def skip_to_last(self, most: int) -> int:
        lines = self._file.count_last_lines(most)
        self._lines = LogLines(self._secrets, before=self._file.read_before(CONTEXT_BYTES))
        return lines

    def read_new(self) -> Iterator[LogPiece]:
        for piece in self._file.read_new():
            yield LogPiece(self._source, [*self._lines.add(piece)])

    def end(self) -> Iterator[LogPiece]:
        yield LogPiece(self._source, [*self._lines.end()])

    def close(self) -> None:
        self._file.close()


class _Tails:
    """The logs that a thread has."""

    def __init__(self, store: Store, thread: ThreadId, request: LogRequest) -> None:
        self._store, self._thread, self._secrets = store, thread, request.secrets
        sources = _find_sources(store, thread)
        self._tails = {path: _Tail(name, path, self._secrets) for path, name in sources.items()}
        left = request.last
        if left is not None:
            # The newest lines are in the last of them.
            for tail in reversed(self._tails.values()):
                left -= tail.skip_to_last(left)

    @property
    def are_none(self) -> bool:
        """Whether there is none."""
        return not self._tails

    def look(self) -> Iterator[LogPiece]:
        """Find the logs that have begun; give the last lines of those that are gone."""
        sources = _find_sources(self._store, self._thread)
        for path in [path for path in self._tails if path not in sources]:
            tail = self._tails.pop(path)
            # It was removed, and is open still: what came last is in it.
            yield from tail.read_new()
            yield from tail.end()
            tail.close()
        for path, name in sources.items():
            if path not in self._tails:
                self._tails[path] = _Tail(name, path, self._secrets)

    def read_new(self) -> Iterator[LogPiece]:
        for tail in self._tails.values():
            yield from tail.read_new()

    def end(self) -> Iterator[LogPiece]:
        for tail in self._tails.values():
            yield from tail.end()

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()


def _find_sources(store: Store, thread: ThreadId) -> dict[str, str]:
    """Give the logs that there are now, by their files, each with whose it is."""
    if not store.is_kept:
        return {}
    sources = {}
    log = log_path(store, thread)
    if os.path.exists(log):
        sources[log] = DRIVER
    run_dir = find_run_dir(store, thread)
    if run_dir is not None and not _is_logged(store, thread, log):
        role, agent = find_player(run_dir)
        sources[os.path.join(run_dir, STDERR)] = f"{role} ({agent})"
    return sources


def find_run_dir(store: Store, thread: ThreadId) -> str | None:
    """Give where the agent of the present turn of *thread* leaves its output, if there is such.

    Raises:
        StoreDamaged: the thread cannot be read.
    """
    head = find_head(store, thread)
    # Looked at before any commit is: most threads have none.
    if head is None or not os.path.isdir(store.local_path("run", thread)):
        return None
    run_dir = store.local_path("run", thread, find_base(store, read_snapshot(store, head.commit)))
    return run_dir if os.path.exists(run_dir) else None


def _is_logged(store: Store, thread: ThreadId, log: str) -> bool:
    """Tell whether the driver of *thread* writes what its agents say into *log* (``--stream``)."""
    driver = find_driver(store, thread) or {}
    place = f"/proc/{driver.get('pid')}"
    try:
        is_its_log = os.path.samestat(os.stat(f"{place}/fd/2"), os.stat(log))
        with open(f"{place}/cmdline", "rb") as file:
            return is_its_log and b"--stream" in file.read().split(b"\0")
    except OSError:
        return False


def _patience_s(store: Store, thread: ThreadId) -> float:
    return _PATIENCE_S if find_status(store, thread) == "ready" else 0


def _read_kept(store: Store, thread: ThreadId, request: LogRequest) -> Iterator[LogPiece]:
    """Give what the last agent that failed had said, out of its Attempt node."""
    for snapshot in walk_history(store, get_head(store, thread).commit):
        if snapshot.record.event != "attempt":
            continue
        view = view_attempt(snapshot, snapshot.get_present().last_attempt) or {}
        lines = LogLines(request.secrets)
        said = [*lines.add(str(view.get("stderr", "")).encode()), *lines.end()]
        source = f"{snapshot.record.role}, attempt {snapshot.record.attempt}, failed"
        first = 0 if request.last is None else max(0, len(said) - request.last)
        yield LogPiece(source, said[first:])
        return
