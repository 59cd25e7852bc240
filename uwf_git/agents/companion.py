"""Companions: a program that we talk with, line by line, for as long as we want to.

Owns: starting and ending such a program, and its three streams.
Knows nothing of: what is said, in which protocol.
Always true: no pipe can fill and stop both: what the program prints is read by threads of its
own, and what we say is never waited for longer than the caller wants to. After ``close`` nothing
that the program started runs any more (its group, then whoever had left it); and it cannot
outlive us (tether.py).
"""

import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple, cast

from uwf_git.agents.group import stop_group
from uwf_git.agents.orphans import Orphans
from uwf_git.agents.tether import tether_by_number

_CHUNK_BYTES = 64 * 1024
_MOST_LINE_BYTES = 64 * 1024 * 1024
_MOST_OUTPUT_BYTES = 512 * 1024 * 1024
_STDERR_TAIL_BYTES = 16 * 1024

# Programs that obey the end of their input have files of their own to finish. All of it together
# is less than the grace that an engine gives us.
_LEAVING_S = 0.5
_GRACE_S = 1.5
_ORPHANS_GRACE_S = 1.0
_TICK_S = 0.05


class CompanionEnded(Exception):
    """The program ended, or closed its stdout, and nothing that it said is left to read."""


class CompanionSaysTooMuch(Exception):
    """It printed a line, or all in all, more than anybody should have to take."""


class CompanionRequest(NamedTuple):
    """A program to start."""

    argv: tuple[str, ...]
    """The program as an absolute path, then its arguments."""

    environment: Mapping[str, str]
    workdir: str


class Companion:
    """A program that runs until it is closed."""

    def __init__(
        self, request: CompanionRequest, *, on_stderr: Callable[[bytes], None] = lambda _: None
    ) -> None:
        """Start the program; its stderr goes to *on_stderr*, from another thread.

        Raises:
            OSError, ValueError: the system would not start it.
        """
        self._on_stderr = on_stderr
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._tail = b""
        self._said_too_much = False
        self._orphans = Orphans()
        read_end, self._tether = os.pipe()
        try:
            self._child = _start(request, read_end)
        except BaseException:
            os.close(self._tether)
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
        """The end of what it has said on stderr."""
        return self._tail

    @property
    def exit_code(self) -> int | None:
        """Its exit status, 128 + n when signal n ended it; None while it runs."""
        status = self._child.poll()
        return status if status is None or status >= 0 else 128 - status

    def send(self, line: bytes, *, wait: Callable[[], None]) -> None:
        """Say *line*, all of it; *wait* is called while the program does not listen, and may raise.

        Raises:
            CompanionEnded: nobody listens any more.
        """
        left = memoryview(line + b"\n")
        poller = select.poll()
        poller.register(self._stdin.fileno(), select.POLLOUT)
        while left:
            try:
                left = left[os.write(self._stdin.fileno(), left) :]
            except BlockingIOError:
                if self.exit_code is not None:
                    raise CompanionEnded from None
                poller.poll(_TICK_S * 1000)
                wait()
            except BrokenPipeError:
                raise CompanionEnded from None

    def receive(self) -> bytes | None:
        """Give the next line that it said; None if there was none within a moment.

        Raises:
            CompanionEnded: there will be none any more.
            CompanionSaysTooMuch: it is too much.
        """
        # A daemon that it left behind may hold its stdout open.
        has_ended = self.exit_code is not None
        try:
            line = self._lines.get(timeout=_TICK_S)
        except queue.Empty:
            if has_ended:
                raise CompanionEnded from None
            return None
        if line is None:
            self._lines.put(None)
            raise CompanionSaysTooMuch if self._said_too_much else CompanionEnded
        return line

    def wait(self, seconds: float) -> int | None:
        """Give its exit status, as soon as there is one, but within *seconds*."""
        until = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < until:
            time.sleep(_TICK_S / 5)
        return self.exit_code

    def close(self) -> None:
        """End it, and all that it started."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._stdin.close()
            self.wait(_LEAVING_S)
        finally:
            stop_group(self._child, grace_s=_GRACE_S)
            self._orphans.end(grace_s=_ORPHANS_GRACE_S)
            self._orphans.close()
            os.close(self._tether)
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
                # Counted in chunks, most of which a long line fills.
                if len(parts) * _CHUNK_BYTES > _MOST_LINE_BYTES or total > _MOST_OUTPUT_BYTES:
                    self._said_too_much = True
                    break
        if parts != [b""] and not self._said_too_much:
            self._lines.put(b"".join(parts))
        self._lines.put(None)

    def _read_stderr(self) -> None:
        with cast("IO[bytes]", self._child.stderr) as stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK_BYTES):
                self._tail = (self._tail + chunk)[-_STDERR_TAIL_BYTES:]
                self._on_stderr(chunk)


def _start(request: CompanionRequest, read_end: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        tether_by_number(read_end, request.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=request.workdir,
        env=dict(request.environment),
        pass_fds=(read_end,),
        start_new_session=True,
        bufsize=0,
    )
