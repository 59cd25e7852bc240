"""Run a command for an agent that is itself being run; output as on a terminal.

When ``run_tool`` returns or raises, the command has ended. Its process group also has a watchdog
shell, which kills the group when we die.
"""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Literal, NamedTuple, cast

from uwf_git.agents.group import stop_group, watched

# The shell's stdin is the watchdog's pipe: a line ends the watchdog, end of file (our death) makes
# it kill the group. The command gets /dev/null and does not inherit the pipe. The shell's own
# stderr is a pipe that hangs up when the shell ends; the last line keeps the shell from becoming
# the command by exec, which would hang it up at once.
_WRAPPER = """\
exec 3<&0 </dev/null
{ read -r line <&3 || kill -s KILL 0; } >/dev/null 2>&1 &
"$@" 3<&- 2>&1
exit $?
"""

_CHUNK_BYTES = 64 * 1024

# More than a pipe holds; a daemon that was left behind may print for ever.
_CHUNKS_AFTER_THE_END = 16

DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024

# Less than an agent's grace, so that a tool can end before its agent is killed.
DEFAULT_GRACE_S = 2.0


class ToolRequest(NamedTuple):
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float | None = None
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """How much of the output is kept; the middle of a longer one is dropped."""

    grace_s: float = DEFAULT_GRACE_S


class ToolRun(NamedTuple):
    outcome: Literal["exited", "timed-out"]

    exit_code: int
    """128 + n if signal n ended it."""

    head: bytes
    """stdout and stderr as they came: all, or the first half of what is kept."""

    tail: bytes

    left_out: int
    """How many bytes were dropped between head and tail."""

    duration_ms: int


def run_tool(request: ToolRequest, *, on_output: Callable[[bytes], None]) -> ToolRun:
    """Run a command to its end, passing output to *on_output* as it comes."""
    output = _HeadAndTail(request.max_output_bytes // 2, on_output)
    started = time.monotonic()
    deadline = None if request.timeout_s is None else started + request.timeout_s
    with _watched(request) as (child, printed, ended):
        try:
            is_ended = _follow(printed, ended, deadline=deadline, output=output)
        except BaseException:
            stop_group(child, grace_s=request.grace_s)
            raise
        if not is_ended:
            stop_group(child, grace_s=request.grace_s)
        _drain(printed, output)
        status = child.wait()
    return ToolRun(
        outcome="exited" if is_ended else "timed-out",
        exit_code=status if status >= 0 else 128 - status,
        head=bytes(output.head),
        tail=bytes(output.tail),
        left_out=output.left_out,
        duration_ms=round((time.monotonic() - started) * 1000),
    )


@dataclass(slots=True)
class _HeadAndTail:
    """Head and tail of an output that may be too long to keep."""

    half: int
    on_output: Callable[[bytes], None]
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    left_out: int = 0

    def add(self, chunk: bytes) -> None:
        self.on_output(chunk)
        room = self.half - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        excess = len(self.tail) - self.half
        if excess > 0:
            del self.tail[:excess]
            self.left_out += excess


@contextmanager
def _watched(request: ToolRequest) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """Start the command; yield its output, and a descriptor that hangs up when it ends."""

    def start(held: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", _WRAPPER, "sh", *request.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=held,
            env=dict(request.environment),
            start_new_session=True,
        )

    with watched(start) as (child, ended), cast("IO[bytes]", child.stdout) as printed:
        try:
            yield child, printed.fileno(), ended
        finally:
            # If the group was stopped, the watchdog is gone.
            with cast("IO[bytes]", child.stdin) as watchdog, suppress(BrokenPipeError):
                os.write(watchdog.fileno(), b"\n")


def _follow(printed: int, ended: int, *, deadline: float | None, output: _HeadAndTail) -> bool:
    """Read output until the command ends; return False if it timed out."""
    poller = select.poll()
    poller.register(printed, select.POLLIN)
    poller.register(ended, 0)
    while True:
        left_s = None if deadline is None else deadline - time.monotonic()
        if left_s is not None and left_s <= 0:
            return False
        events = dict(poller.poll(None if left_s is None else left_s * 1000))
        if ended in events:
            return True
        if printed in events:
            chunk = os.read(printed, _CHUNK_BYTES)
            if chunk:
                output.add(chunk)
            else:
                # The command closed its outputs and works on.
                poller.unregister(printed)


def _drain(printed: int, output: _HeadAndTail) -> None:
    """Read what the pipe still holds; a daemon may keep it open."""
    os.set_blocking(printed, False)
    with suppress(BlockingIOError):
        for _ in range(_CHUNKS_AFTER_THE_END):
            chunk = os.read(printed, _CHUNK_BYTES)
            if not chunk:
                return
            output.add(chunk)
