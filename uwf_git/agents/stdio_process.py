"""A program that we talk to line by line over its stdin and stdout.

Threads read its output, so no pipe can fill and block both sides. After ``close`` nothing that the
program started runs any more (nested.py).
"""

import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple, cast

from uwf_git.agents.group import Orphans, stop_group
from uwf_git.agents.nested import watched_by_descriptor

_CHUNK_BYTES = 64 * 1024
_MOST_LINE_BYTES = 64 * 1024 * 1024
_MOST_OUTPUT_BYTES = 512 * 1024 * 1024
_STDERR_TAIL_BYTES = 16 * 1024

# A program that ends at end of input may still write files. All of these together are less than
# the grace that an engine gives us.
_EXIT_S = 0.5
_GRACE_S = 1.5
_ORPHANS_GRACE_S = 1.0
_TICK_S = 0.05


class StdioEnded(Exception):
    """The program ended or closed its stdout, and all its output was read, up to the limits."""

    def __init__(self, *, is_too_long: bool = False) -> None:
        super().__init__()
        self.is_too_long = is_too_long
        """A line, or the whole output, is longer than the limit."""


class StdioRequest(NamedTuple):
    argv: tuple[str, ...]
    """The program as an absolute path, then its arguments."""

    environment: Mapping[str, str]
    workdir: str


class StdioProcess:
    """A program that runs until it is closed."""

    def __init__(
        self, request: StdioRequest, *, on_stderr: Callable[[bytes], None] = lambda _: None
    ) -> None:
        """Start the program; its stderr goes to *on_stderr*, from another thread."""
        self._on_stderr = on_stderr
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._tail = b""
        self._is_too_long = False
        self._orphans = Orphans()
        read_end, self._watchdog_pipe = os.pipe()
        try:
            self._child = _start(request, read_end)
        except BaseException:
            os.close(self._watchdog_pipe)
            self._orphans.close()
            raise
        finally:
            os.close(read_end)
        self._orphans.keep(self._child.pid)
        self._stdin = cast("IO[bytes]", self._child.stdin)
        os.set_blocking(self._stdin.fileno(), False)
        self._readers = [self._begin(self._read_stdout), self._begin(self._read_stderr)]
        self._is_open = True

    @property
    def stderr_tail(self) -> bytes:
        return self._tail

    @property
    def exit_code(self) -> int | None:
        """Its exit status, 128 + n if signal n ended it; None while it runs."""
        status = self._child.poll()
        return status if status is None or status >= 0 else 128 - status

    def send(self, line: bytes, *, wait: Callable[[], None]) -> None:
        """Write *line*; *wait* is called while the pipe is full, and may raise."""
        left = memoryview(line + b"\n")
        poller = select.poll()
        poller.register(self._stdin.fileno(), select.POLLOUT)
        while left:
            try:
                left = left[os.write(self._stdin.fileno(), left) :]
            except BlockingIOError:
                if self.exit_code is not None:
                    raise StdioEnded from None
                poller.poll(_TICK_S * 1000)
                wait()
            except BrokenPipeError:
                raise StdioEnded from None

    def receive(self) -> bytes | None:
        """Return its next line; None if there was none within a moment."""
        # A daemon that it left behind may keep its stdout open.
        has_ended = self.exit_code is not None
        try:
            line = self._lines.get(timeout=_TICK_S)
        except queue.Empty:
            if has_ended:
                raise StdioEnded from None
            return None
        if line is None:
            self._lines.put(None)
            raise StdioEnded(is_too_long=self._is_too_long)
        return line

    def wait(self, seconds: float) -> int | None:
        """Wait at most *seconds* for its end; return its exit status, None if it runs on."""
        until = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < until:
            time.sleep(_TICK_S / 5)
        return self.exit_code

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._stdin.close()
            self.wait(_EXIT_S)
        finally:
            stop_group(self._child, grace_s=_GRACE_S)
            self._orphans.end(grace_s=_ORPHANS_GRACE_S)
            self._orphans.close()
            os.close(self._watchdog_pipe)
            for reader in self._readers:
                reader.join(timeout=_GRACE_S)

    def _begin(self, read: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _read_stdout(self) -> None:
        total = 0
        parts: list[bytes] = []
        with cast("IO[bytes]", self._child.stdout) as stdout:
            while chunk := os.read(stdout.fileno(), _CHUNK_BYTES):
                total += len(chunk)
                *ended, rest = chunk.split(b"\n")
                for line in ended:
                    self._lines.put(b"".join([*parts, line]))
                    parts = []
                parts.append(rest)
                # Counted in chunks, which a long line mostly fills.
                if len(parts) * _CHUNK_BYTES > _MOST_LINE_BYTES or total > _MOST_OUTPUT_BYTES:
                    self._is_too_long = True
                    break
        if parts != [b""] and not self._is_too_long:
            self._lines.put(b"".join(parts))
        self._lines.put(None)

    def _read_stderr(self) -> None:
        with cast("IO[bytes]", self._child.stderr) as stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK_BYTES):
                self._tail = (self._tail + chunk)[-_STDERR_TAIL_BYTES:]
                self._on_stderr(chunk)


def _start(request: StdioRequest, read_end: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        watched_by_descriptor(read_end, request.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=request.workdir,
        env=dict(request.environment),
        pass_fds=(read_end,),
        start_new_session=True,
        bufsize=0,
    )
