"""Nested programs: the agent program that an adapter drives, run to its end.

Owns: starting, watching and ending one program on behalf of an agent that is itself being run.
Knows nothing of: which program, what it says.
Always true: when ``run_nested`` returns or raises, nothing that the program started runs any more:
its process group is ended, then whatever had escaped from the group (orphans.py). It cannot
outlive us either (tether.py). All that it read and printed is in files; no pipe can fill, and
nothing waits for a daemon that holds one open.
"""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Literal, NamedTuple, cast

from uwf_git.agents.group import stop_group
from uwf_git.agents.nested_environment import allowed_environment
from uwf_git.agents.noted_signals import noted_signals
from uwf_git.agents.orphans import Orphans
from uwf_git.agents.tether import tether_by_stdin

__all__ = ["NestedRequest", "NestedRun", "allowed_environment", "run_nested"]

STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"

DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024 * 1024

# Less than an agent's own grace, so that a program can obey before its adapter is killed.
DEFAULT_GRACE_S = 2.0
_ORPHANS_GRACE_S = 1.0

_STDERR_TAIL_BYTES = 64 * 1024

# How often outputs are forwarded and limits looked at; the end itself is not polled.
_TICK_S = 0.05

# How long the waiting shell gets to end by itself; it takes less than one.
_LEAVE_S = 0.02
_LEAVE_TICK_S = 0.0005

_CHUNK_BYTES = 64 * 1024
# A slow reader must not keep us from the limits for long.
_CHUNKS_A_TICK = 64

Outcome = Literal["exited", "timed-out", "silent", "too-much-output", "interrupted"]


class NestedRequest(NamedTuple):
    """A program to run, and its limits."""

    argv: tuple[str, ...]
    """The program as an absolute path, then its arguments."""

    environment: Mapping[str, str]
    """All of it; see ``allowed_environment``."""

    workdir: str
    given: bytes
    """What it can read on stdin."""

    folder: str
    """Where stdin, stdout and stderr lie; nothing else should use it."""

    timeout_s: float | None = None
    silence_s: float | None = None
    """How long it may print nothing at all."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The most that stdout, and stderr, may hold."""

    grace_s: float = DEFAULT_GRACE_S


class NestedRun(NamedTuple):
    """What came of it."""

    outcome: Outcome
    """``interrupted``: somebody asked us to end (SIGTERM, SIGINT, SIGHUP)."""

    exit_code: int
    """128 + n when signal n ended it; of a program that we ended, what it made of that."""

    stdout: bytes
    """At most the limit; the file has all of it."""

    stderr: bytes
    """The end of it."""

    duration_ms: int


def run_nested(
    request: NestedRequest,
    *,
    on_stdout: Callable[[bytes], None] = lambda _: None,
    on_stderr: Callable[[bytes], None] = lambda _: None,
) -> NestedRun:
    """Run a program to its end; what it prints is passed on as it comes.

    The pieces may end in the middle of a character. What a callback raises ends the program. In
    the main thread, signals that ask us to end are taken note of instead, and end the program.

    Raises:
        OSError, ValueError: the folder cannot be written, or the system would not start it.
    """
    started = time.monotonic()
    noted: list[int] = []
    with (
        closing(Orphans()) as orphans,
        closing(_open_outputs(request.folder, request.given)) as outputs,
        noted_signals(noted),
        _tethered(request) as (child, ended),
    ):
        orphans.keep(child.pid)
        outputs.stdout.on_chunk, outputs.stderr.on_chunk = on_stdout, on_stderr
        try:
            outcome = _follow(request, outputs, ended, noted)
            if outcome == "exited":
                _take_leave(child)
        finally:
            # The waiting shell ends with its group.
            stop_group(child, grace_s=request.grace_s)
            orphans.end(grace_s=min(request.grace_s, _ORPHANS_GRACE_S))
        outputs.forward()
        status = child.wait()
        return NestedRun(
            outcome=outcome,
            exit_code=status if status >= 0 else 128 - status,
            stdout=outputs.stdout.read(0, request.max_output_bytes),
            stderr=outputs.stderr.read_tail(),
            duration_ms=round((time.monotonic() - started) * 1000),
        )


def _follow(request: NestedRequest, outputs: "_Outputs", ended: int, noted: list[int]) -> Outcome:
    """Stay with the program until it has ended, or there is a reason to end it."""
    poller = select.poll()
    poller.register(ended, 0)
    deadline = _deadline(request.timeout_s)
    silent_from = _deadline(request.silence_s)
    while not poller.poll(_tick_ms(deadline, silent_from)):
        if outputs.forward(at_most=_CHUNKS_A_TICK):
            silent_from = _deadline(request.silence_s)
        now = time.monotonic()
        if noted:
            return "interrupted"
        if outputs.size() > request.max_output_bytes:
            return "too-much-output"
        if now >= deadline:
            return "timed-out"
        if now >= silent_from:
            return "silent"
    return "too-much-output" if outputs.size() > request.max_output_bytes else "exited"


def _take_leave(child: "subprocess.Popen[bytes]") -> None:
    """Let the waiting shell end when the program has, and see it off.

    Its remains would be a member of the group and a child of ours, and all of /proc would be
    searched for others: for some milliseconds, at every turn of an agent.
    """
    # Unbuffered: what could not be written to a shell that is gone would be tried again at close.
    with suppress(BrokenPipeError):
        os.write(cast("IO[bytes]", child.stdin).fileno(), b"\n")
    child.wait()
    until = time.monotonic() + _LEAVE_S
    # Nobody's where orphans do not come to us.
    with suppress(ChildProcessError):
        while time.monotonic() < until:
            if not os.waitpid(-child.pid, os.WNOHANG)[0]:
                time.sleep(_LEAVE_TICK_S)


def _deadline(limit_s: float | None) -> float:
    return float("inf") if limit_s is None else time.monotonic() + limit_s


def _tick_ms(*deadlines: float) -> float:
    left_s = min(deadlines) - time.monotonic()
    return max(0.0, min(_TICK_S, left_s)) * 1000


@dataclass(slots=True)
class _Output:
    """One output, in its file."""

    descriptor: int
    on_chunk: Callable[[bytes], None] = lambda _: None
    forwarded: int = 0

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def forward(self, at_most: int | None) -> bool:
        """Pass on what is new, at most so many chunks; tell whether there was anything."""
        before = self.forwarded
        size = self.size()
        if size < before:
            # `echo … >/dev/stderr` truncates the file, where it would write to a terminal.
            self.forwarded = 0
        chunks = 0
        while self.forwarded < size and chunks != at_most:
            chunk = os.pread(
                self.descriptor, min(_CHUNK_BYTES, size - self.forwarded), self.forwarded
            )
            if not chunk:
                break
            self.forwarded += len(chunk)
            chunks += 1
            self.on_chunk(chunk)
        return self.forwarded != before

    def read(self, start: int, length: int) -> bytes:
        chunks = []
        while length > 0 and (chunk := os.pread(self.descriptor, min(length, 1 << 20), start)):
            chunks.append(chunk)
            start += len(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def read_tail(self) -> bytes:
        start = max(0, self.size() - _STDERR_TAIL_BYTES)
        return self.read(start, _STDERR_TAIL_BYTES)


@dataclass(slots=True)
class _Outputs:
    """Both outputs."""

    stdout: _Output
    stderr: _Output

    def forward(self, *, at_most: int | None = None) -> bool:
        heard = [each.forward(at_most) for each in (self.stdout, self.stderr)]
        return any(heard)

    def size(self) -> int:
        return max(self.stdout.size(), self.stderr.size())

    def close(self) -> None:
        os.close(self.stdout.descriptor)
        os.close(self.stderr.descriptor)


def _open_outputs(folder: str, given: bytes) -> _Outputs:
    os.makedirs(folder, exist_ok=True)
    with open(_create(folder, STDIN), "wb") as file:
        file.write(given)
    stdout = _create(folder, STDOUT)
    try:
        return _Outputs(_Output(stdout), _Output(_create(folder, STDERR)))
    except OSError:
        os.close(stdout)
        raise


def _create(folder: str, name: str) -> int:
    path = os.path.join(folder, name)
    with suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)


@contextmanager
def _tethered(request: NestedRequest) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Start the program; the number is a file that breaks when it ends."""
    # The program stands somewhere else.
    folder = os.path.abspath(request.folder)
    ended, held = os.pipe()
    try:
        try:
            child = subprocess.Popen(
                tether_by_stdin(folder, request.argv),
                stdin=subprocess.PIPE,
                stdout=held,
                stderr=subprocess.DEVNULL,
                cwd=request.workdir,
                env=dict(request.environment),
                start_new_session=True,
            )
        finally:
            os.close(held)
        with cast("IO[bytes]", child.stdin):
            yield child, ended
    finally:
        os.close(ended)
