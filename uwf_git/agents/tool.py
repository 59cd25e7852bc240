"""Tools: a program that an agent runs, with its output as a terminal would show it.

Owns: running a command on behalf of an agent that is itself being run.
Knows nothing of: which agent, what the output means.
Always true: when ``run_tool`` returns or raises, the command has ended. It cannot outlive whoever
runs it either: it has a process group of its own, so that it can be ended alone, and in that
group a shell that waits for a pipe to break, and then kills the group. So a command goes down
with its agent, however that came to its end.
"""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Literal, NamedTuple, cast

from uwf_git.agents.group import stop_group

# The tether is the shell's stdin. A line on it lets the waiting shell go; its end, which is also
# our death, makes it kill. The command gets /dev/null, and no way to hold the tether. The shell's
# own stderr is a pipe that breaks when the shell ends; the last line keeps the shell from becoming
# the command, which would break it at once.
_WRAPPER = """\
exec 3<&0 </dev/null
{ read -r line <&3 || kill -s KILL 0; } >/dev/null 2>&1 &
"$@" 3<&- 2>&1
exit $?
"""

_CHUNK_BYTES = 64 * 1024

# More than a pipe holds; a daemon that was left behind may go on printing for ever.
_CHUNKS_AFTER_THE_END = 16

DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024

# Less than an agent's own grace, so that a tool can obey before its agent is killed.
DEFAULT_GRACE_S = 2.0


class ToolRequest(NamedTuple):
    """A command to run in the directory in which we are."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float | None = None
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """How much of the output is kept; the middle of a longer one is left out."""

    grace_s: float = DEFAULT_GRACE_S


class ToolRun(NamedTuple):
    """What came of it."""

    outcome: Literal["exited", "timed-out"]

    exit_code: int
    """128 + n when signal n ended it."""

    head: bytes
    """stdout and stderr as they came: all of it, or the first half of what is kept."""

    tail: bytes
    """The other half."""

    left_out: int
    """How many bytes stood between head and tail."""

    duration_ms: int


def run_tool(request: ToolRequest, *, on_output: Callable[[bytes], None]) -> ToolRun:
    """Run a command to its end; everything it prints goes to *on_output* as it comes.

    Raises:
        OSError, ValueError: the system would not start it.
    """
    output = _Output(request.max_output_bytes // 2, on_output)
    started = time.monotonic()
    deadline = None if request.timeout_s is None else started + request.timeout_s
    with _tethered(request) as (child, printed, ended):
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
class _Output:
    """The beginning and the end of what may be too long to keep."""

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
def _tethered(request: ToolRequest) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """Start the command; the numbers are its output, and a file that breaks when it ends."""
    ended, held = os.pipe()
    try:
        try:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _WRAPPER, "sh", *request.argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=held,
                env=dict(request.environment),
                start_new_session=True,
            )
        finally:
            os.close(held)
        tether, printed = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        with printed:
            try:
                yield child, printed.fileno(), ended
            finally:
                # The waiting shell is gone when the group was stopped.
                with suppress(BrokenPipeError):
                    os.write(tether.fileno(), b"\n")
                tether.close()
    finally:
        os.close(ended)


def _follow(printed: int, ended: int, *, deadline: float | None, output: _Output) -> bool:
    """Take the output until the command has ended; False says that the time is over."""
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
                # The command closed its outputs, and works on in silence.
                poller.unregister(printed)


def _drain(printed: int, output: _Output) -> None:
    """Take what the pipe still holds, and do not wait for a daemon that holds it open."""
    os.set_blocking(printed, False)
    with suppress(BlockingIOError):
        for _ in range(_CHUNKS_AFTER_THE_END):
            chunk = os.read(printed, _CHUNK_BYTES)
            if not chunk:
                return
            output.add(chunk)
