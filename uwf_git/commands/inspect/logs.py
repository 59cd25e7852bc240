"""`uwf thread logs`: the logs of a thread's driver and agents, with keys masked.

background driver <git dir>/uwf/logs/<thread>.log, until the thread is removed running agent the
run directory of its step, until the step is recorded ended agent its Attempt node; its step, if
that keeps its log
"""

import codecs
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import NamedTuple

from uwf_git.agents.command_line import MAX_LOGGED_BYTES
from uwf_git.agents.files import OutputFile, open_left_file
from uwf_git.agents.run_files import STDERR
from uwf_git.commands.agent_run.run_checks import Secrets, read_secrets
from uwf_git.commands.agent_run.runs import find_player, is_any_at_work
from uwf_git.commands.family import Family, list_present_descendants, name_branch
from uwf_git.commands.inspect.show import get_text, view_attempt
from uwf_git.engine.masking import find_secrets, mask, mask_keys
from uwf_git.model.names import ThreadId
from uwf_git.model.text import without_colours
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot, walk_history
from uwf_git.store.threads.local_files import (
    RunDir,
    find_driver,
    get_run_dir,
    has_runs,
    list_possibly_active,
    log_path,
)
from uwf_git.store.threads.naming import resolve_thread

# Read a file that another process appends to, without blocking.
#
# The file may appear late, shrink, be replaced or removed. Each byte is returned once.

_CHUNK_BYTES = 64 * 1024

_NEWLINE = re.compile(rb"\n")


class GrowingFile:
    """A file that is read as it grows; it need not exist yet."""

    def __init__(self, path: str, *, most_bytes: int | None = None) -> None:
        """Open it, if it is there; what lies behind *most_bytes* is not read."""
        self.path = path
        self._most_bytes = most_bytes
        self._file: OutputFile | None = None
        self.is_closed = False
        """It is there, and this user may not read it."""

        self._open()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read_new(self) -> Iterator[bytes]:
        """Yield what came since the last call, in chunks."""
        yield from self._read_on()
        is_replaced = False
        with suppress(OSError):
            there, file = os.stat(self.path), self._file
            is_replaced = file is None or not os.path.samestat(there, os.fstat(file.descriptor))
        if is_replaced:
            # What came to the old file since.
            yield from self._read_on()
            self.close()
            self._open()
            yield from self._read_on()

    def count_last_lines(self, most: int) -> int:
        """Move to the last lines, at most *most*; return how many these are."""
        if self._file is None:
            return 0
        size = self._file.size()
        if self._most_bytes is not None:
            size = min(size, self._most_bytes)
        begin, starts = size, list[int]()
        while begin > 0 and len(starts) < most:
            end, begin = begin, max(0, begin - _CHUNK_BYTES)
            chunk = self._file.read(begin, end - begin)
            found = [begin + each.end() for each in _NEWLINE.finditer(chunk)]
            # A newline at the end of the file begins no line.
            starts += [each for each in reversed(found) if each < size]
        starts += [0] if size and not begin else []
        del starts[most:]
        self._file.offset = starts[-1] if starts else size
        return len(starts)

    def read_before(self, length: int) -> bytes:
        """Return the bytes before the position, at most *length*."""
        if self._file is None:
            return b""
        start = max(0, self._file.offset - length)
        return self._file.read(start, self._file.offset - start)

    def _open(self) -> None:
        try:
            self._file = open_left_file(self.path)
        except OSError as error:
            self.is_closed = isinstance(error, PermissionError)

    def _read_on(self) -> Iterator[bytes]:
        if self._file is not None:
            yield from self._file.read_new(limit=self._most_bytes)


# Join pieces of bytes to lines, and mask keys in them.
#
# Lines are masked whole, up to a length; a private key is masked over all its lines, and so is a
# secret in lines that arrive together. Control characters stay.

CONTEXT_BYTES = 16 * 1024
"""How far back a private key may have begun."""

LAST_BYTES = 2 * CONTEXT_BYTES
"""In how many bytes at the end of a log its last line is looked for."""

_SHOWN_BYTES = 4 * 1024
_LONGEST_LINE = 256 * 1024
# RSA keys are the longest: 16384 bits make 200 lines.
_MOST_KEY_LINES = 250

_SPACE = re.compile(r"\s")
# A program overwrites a line with a lone carriage return; each version is a line here.
_LINE_END = re.compile(r"\r\n|[\r\n]")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")


class LogLines:
    def __init__(self, secrets: Secrets, *, before: bytes = b"") -> None:
        """Create it; *before* is the log before the first piece: a key may have begun there."""
        self._secrets = secrets
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._key_lines = 0
        list(self.add(before))
        self._held = ""
        self._decoder.reset()

    def add(self, piece: bytes) -> Iterator[str]:
        """Yield the lines that *piece* completes, without line ends."""
        text = self._held + self._decoder.decode(piece)
        # A carriage return at the end may be the first half of "\r\n".
        end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
        self._held = text[end:]
        yield from self._masked(text[:end])
        if len(self._held) > _LONGEST_LINE:
            # Cut at a space: keys have none.
            place = self._held.rfind(" ") + 1 or len(self._held)
            line, self._held = self._held[:place], self._held[place:]
            yield from self._masked(line)

    def end(self) -> Iterator[str]:
        """Yield the last line if it has no line end."""
        held = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        if held:
            yield from self._masked(held.removesuffix("\r"))

    def _masked(self, text: str) -> Iterator[str]:
        # Over all lines: `base64` wraps what it prints.
        masked = mask(text, self._secrets.find_in(text))
        start = 0
        for end in _LINE_END.finditer(masked):
            yield from self._without_keys(masked[start : end.start()])
            start = end.end()
        if start < len(masked):
            yield from self._without_keys(masked[start:])

    def _without_keys(self, line: str) -> Iterator[str]:
        if 0 < self._key_lines <= _MOST_KEY_LINES:
            ends = _KEY_ENDS.search(line)
            self._key_lines = 0 if ends else self._key_lines + 1
            line = line[ends.end() :] if ends else ""
            if not line:
                return
        begun = list(_KEY_BEGINS.finditer(line))
        self._key_lines = int(bool(begun) and _KEY_ENDS.search(line, begun[-1].end()) is None)
        yield mask_keys(line) if line else ""


class LastLine:
    """The last line of a log that says anything, without colours; keys are masked."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._tail = b""
        self._is_cut = False
        self._found = (b"", "")

    def add(self, piece: bytes) -> None:
        tail = self._tail + piece
        self._is_cut = self._is_cut or len(tail) > LAST_BYTES
        self._tail = tail[-LAST_BYTES:]

    def find(self) -> str:
        """Return the line, which may not have ended yet; "" without a line."""
        tail = self._tail
        if self._found[0] is not tail:
            # Another thread may add meanwhile.
            self._found = (tail, self._find(tail, is_cut=self._is_cut))
        return self._found[1]

    def _find(self, tail: bytes, *, is_cut: bool) -> str:
        if len(tail) > _SHOWN_BYTES and b"PRIVATE KEY" not in tail:
            tail, is_cut = tail[-_SHOWN_BYTES:], True
        text = tail.decode(errors="replace")
        if is_cut:
            # Half a key could not be masked; keys have no space.
            text = "".join(_SPACE.split(text, maxsplit=1)[1:])
        masked = mask_keys(mask(text, self._secrets.find_in(text)))
        lines = (without_colours(line).strip() for line in reversed(_LINE_END.split(masked)))
        return next(filter(None, lines), "")


DRIVER = "background driver"

_TICK_S = 0.05

# A ready thread without a process may be between two calls of `uwf thread step`.
_PATIENCE_S = 1.0


class LogRequest(NamedTuple):
    thread: str

    last: int | None = None
    """How many of the newest existing lines to read; None: all."""

    environ: Mapping[str, str] = {}
    """Its secrets are masked, and those of the running agent, besides all that looks like a key."""


class LogPiece(NamedTuple):
    source: str

    lines: list[str]
    """Without line ends; control characters stay."""


def read_logs(store: Store, request: LogRequest) -> Iterator[LogPiece]:
    """Yield the logs of a thread's driver and running agent, or else the newest kept log."""
    with closing(LogReader(store, request)) as reader:
        yield from reader.read_new()
        yield from reader.end()


def follow_logs(store: Store, request: LogRequest) -> Iterator[LogPiece]:
    """Yield as ``read_logs``, and new lines until no process works on the thread."""
    with closing(LogReader(store, request)) as reader:
        busy_at = time.monotonic()
        while True:
            # Checked first: lines from before the check are read below.
            is_over = reader.is_over()
            yield from reader.read_new()
            if not is_over:
                busy_at = time.monotonic()
            else:
                may_go_on = find_status(store, reader.thread) in {"ready", "split"}
                if time.monotonic() - busy_at >= (_PATIENCE_S if may_go_on else 0):
                    break
            time.sleep(_TICK_S)
        yield from reader.end()


def find_last_log_line(store: Store, thread: ThreadId, environ: Mapping[str, str]) -> str | None:
    run = find_run_dir(store, thread)
    return None if run is None else read_last_log_line(run, environ)


def read_last_log_line(run: RunDir, environ: Mapping[str, str]) -> str | None:
    for each in (*reversed(run.list_checks()), run):
        with suppress(OSError), closing(open_left_file(os.path.join(each.path, STDERR))) as file:
            size = file.size()
            start = max(0, size - LAST_BYTES - 1)
            line = LastLine(read_secrets(each, find_secrets(environ)))
            line.add(file.read(start, size - start))
            if found := line.find():
                return found
    return None


def stamp_logs(run: RunDir) -> tuple[tuple[int, int], ...]:
    """Return what changes when the agent of a run, or a check of the run, logs something."""
    stamps: list[tuple[int, int]] = []
    for each in (run, *run.list_checks()):
        with suppress(OSError):
            found = os.stat(os.path.join(each.path, STDERR))
            stamps.append((found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def find_status(store: Store, text: str) -> str:
    head = get_head(store, resolve_thread(store, text))
    return read_snapshot(store, head.commit).record.status


_CLOSED = "[this log is another user's, who alone may read it]"


class _Tail:
    def __init__(self, source: str, path: str, secrets: Secrets) -> None:
        self._source = source
        # An agent that writes more is stopped; one without an engine may go on without end.
        most_bytes = None if source.startswith(DRIVER) else MAX_LOGGED_BYTES
        self._file = GrowingFile(path, most_bytes=most_bytes)
        self._secrets = secrets
        self._lines = LogLines(secrets)
        self.is_closed = self._file.is_closed
        self._notes = [_CLOSED] if self.is_closed else []

    def skip_to_last(self, most: int) -> int:
        del self._notes[most:]
        lines = self._file.count_last_lines(most)
        self._lines = LogLines(self._secrets, before=self._file.read_before(CONTEXT_BYTES))
        return lines

    def read_new(self) -> Iterator[LogPiece]:
        while self._notes:
            yield LogPiece(self._source, [self._notes.pop()])
        for piece in self._file.read_new():
            yield LogPiece(self._source, [*self._lines.add(piece)])

    def end(self) -> Iterator[LogPiece]:
        yield LogPiece(self._source, [*self._lines.end()])

    def close(self) -> None:
        self._file.close()


class LogReader:
    """Reads as ``follow_logs``, a piece at a call, for a reader that waits by itself."""

    def __init__(self, store: Store, request: LogRequest) -> None:
        self._store, self._request = store, request
        self.thread = get_head(store, resolve_thread(store, request.thread)).thread
        self._family = Family(store, self.thread)
        self._tails: dict[str, _Tail] = {}
        self._look()
        self._is_first = True
        left = request.last
        if left is not None:
            # The newest lines are in the last log.
            for tail in reversed(self._tails.values()):
                left -= tail.skip_to_last(left)

    def read_new(self) -> Iterator[LogPiece]:
        """Yield what came since the last call; at the first as ``read_logs``."""
        if not self._is_first:
            for tail in self._look():
                # It was removed, but is still open.
                yield from tail.read_new()
                yield from tail.end()
                tail.close()
        elif all(tail.is_closed for tail in self._tails.values()):
            yield from _read_last_log(self._store, self.thread, self._request)
        self._is_first = False
        for tail in self._tails.values():
            yield from tail.read_new()

    def _look(self) -> list[_Tail]:
        """Open new logs; return the removed ones."""
        sources = _find_sources(self._store, self._family)
        removed = [self._tails.pop(path) for path in [*self._tails] if path not in sources]
        known = find_secrets(self._request.environ)
        for path, (name, run) in sources.items():
            if path not in self._tails:
                own = Secrets(known) if run is None else read_secrets(run, known)
                self._tails[path] = _Tail(name, path, own)
        return removed

    def is_over(self) -> bool:
        return not is_any_at_work(self._store, self._family)

    def end(self) -> Iterator[LogPiece]:
        for tail in self._tails.values():
            yield from tail.end()

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()


def _find_sources(store: Store, family: Family) -> dict[str, tuple[str, RunDir | None]]:
    """Return the name of each existing log, which a branch's log also has, and its run, by path."""
    log = log_path(store, family.root)
    sources = _find_own_sources(store, family.root, log)
    branches = (each for each in list_possibly_active(store) if each in family)
    for branch in sorted(branches):
        if branch == family.root:
            continue
        for path, (name, run) in _find_own_sources(store, branch, log).items():
            sources[path] = (f"{name}{_where(store, branch)}", run)
    return sources


def _where(store: Store, branch: ThreadId) -> str:
    # Once joined, a branch is named by no split.
    return f", branch {name_branch(store, branch) or branch}"


def _find_own_sources(
    store: Store, thread: ThreadId, log_of_root: str
) -> dict[str, tuple[str, RunDir | None]]:
    sources: dict[str, tuple[str, RunDir | None]] = {}
    log = log_path(store, thread)
    if os.path.exists(log):
        sources[log] = (DRIVER, None)
    run = find_run_dir(store, thread)
    is_logged = any(_is_logged(store, thread, each) for each in {log, log_of_root})
    if run is not None and not is_logged:
        role, agent = find_player(run)
        sources[os.path.join(run.path, STDERR)] = (f"{role} ({agent})", run)
        for check in run.list_checks():
            program = find_player(check)[1]
            sources[os.path.join(check.path, STDERR)] = (f"{role}, check {program}", check)
    return sources


def find_run_dir(store: Store, thread: ThreadId) -> RunDir | None:
    head = find_head(store, thread)
    # Checked before a commit is read: most threads have no run directory.
    if head is None or not has_runs(store, thread):
        return None
    run = get_run_dir(store, thread, read_snapshot(store, head.commit).turn_start)
    return run if os.path.exists(run.path) else None


def _is_logged(store: Store, thread: ThreadId, log: str) -> bool:
    """Check whether the driver of *thread* copies its agents' output into *log*.

    Of those in the background ``uwf plan resume`` always does, others with ``--stream``.
    """
    driver = find_driver(store, thread) or {}
    place = f"/proc/{driver.get('pid')}"
    try:
        is_its_log = os.path.samestat(os.stat(f"{place}/fd/2"), os.stat(log))
        with open(f"{place}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            return is_its_log and not {b"--stream", b"plan"}.isdisjoint(words)
    except OSError:
        return False


def _read_last_log(store: Store, thread: ThreadId, request: LogRequest) -> Iterator[LogPiece]:
    """Yield the newest log that a failed attempt or a step keeps, also of a branch."""
    threads = [thread, *list_present_descendants(store, thread)]
    tips = [read_snapshot(store, get_head(store, each).commit) for each in threads]
    for tip in sorted(tips, key=lambda each: each.commit.time_s, reverse=True):
        where = "" if tip.record.thread == thread else _where(store, tip.record.thread)
        piece = _find_last_log(store, tip, request, where)
        if piece is not None:
            yield piece
            return


def _find_last_log(store: Store, tip: Snapshot, request: LogRequest, where: str) -> LogPiece | None:
    for snapshot in walk_history(store, tip.commit.oid):
        record, log, source = snapshot.record, "", ""
        if record.event == "attempt":
            view = view_attempt(snapshot, snapshot.get_present().last_attempt) or {}
            log = str(view.get("stderr", ""))
            source = f"{record.role}, attempt {record.attempt}, failed"
        elif record.event == "step":
            log = get_text(snapshot, snapshot.get_head_node().payload.get("stderr"))
            source = f"{record.role}, step {record.depth}"
        if not log:
            continue
        lines = LogLines(Secrets(find_secrets(request.environ)))
        shown = [*lines.add(log.encode()), *lines.end()]
        first = 0 if request.last is None else max(0, len(shown) - request.last)
        return LogPiece(source + where, shown[first:])
    return None
