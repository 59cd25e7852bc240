"""Run an agent: one process group, output in files.

When ``run_agent`` returns or raises, the agent has ended; a daemon that it left behind may live
on. If the engine is killed instead, the agent runs on, and the next engine reads its files
(``run_files.read_run_state``).

/bin/sh runs the agent and writes its exit status to a file, since only a living parent could
wait for the status. The shell's stdin is the write end of a pipe that breaks when the shell ends,
so waiting costs neither time nor processor on any system.

``run_tool`` runs a command for an agent that is itself being run, its output as on a terminal. When
it returns or raises, the command has ended. The command's process group also has a watchdog shell,
which kills the group when we die.
"""

import errno
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

from uwf_git.agents.command_line import AgentRequest, AgentRun, Listener, RunOutcome
from uwf_git.agents.files import Outputs, forward
from uwf_git.agents.group import (
    check_cancelled,
    deferred_signals,
    find_deadline,
    name_left,
    stop_group,
    tick_ms,
    watched,
)
from uwf_git.agents.run_files import (
    EXIT,
    PID,
    RESERVED_EXIT,
    STDERR,
    RunDirUnusable,
    create_run_outputs,
    find_run_start_ms,
    keep_exit_code,
)
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, Refused

# The traps keep the shell alive on SIGTERM to the group, so that it writes the status; unlike
# ignored signals they are not inherited. No variable is set, since a shell exports those that it
# found in its environment. The status is one write, newline included; `1<>` writes it without a
# truncation, which would give back the reserved room, and waits for no reader if an agent put a
# pipe there. The shell's own stderr is /dev/null: its message about the agent's end (`Terminated`)
# would be the last line of the log.
# (Without the parentheses some shells redirect themselves as well.)
_WRAPPER = """\
echo $$ >{pid} || exit 125
trap : TERM INT HUP
(exec "$@" </dev/null {outputs})
set -- $?
echo $1 1<>{reserved}
echo $1 1<>{exit}
exit $1
"""

_NO_PID_FILE = 125

# Chunks of output forwarded between two checks of the limits, since a terminal may be slow.
_CHUNKS_A_TICK = 16


class WorkdirMissing(Refused):
    """The agent's work directory does not exist or cannot be entered."""

    code = "workdir-missing"

    def __init__(self, workdir: str, problem: str) -> None:
        super().__init__(
            f"the work directory {workdir} {problem}",
            hint="create it, or name another one with --workdir",
            workdir=workdir,
            problem=problem,
        )


class SpawnFailed(AgentFailed):
    code = "spawn-failed"

    def __init__(self, program: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"cannot start {program}: {problem}", hint=hint, program=program, problem=problem
        )


class AgentInterrupted(KeyboardInterrupt):
    """Ctrl-C came while the agent ran; it was stopped, and *run* is what it left."""

    def __init__(self, run: AgentRun) -> None:
        super().__init__("the agent was interrupted")
        self.run = run


def run_agent(request: AgentRequest, listener: Listener) -> AgentRun:
    """Run an agent to its end and return what it left.

    Output goes to *listener* as it comes. An exception of *listener* ends the agent. Raises
    WorkdirMissing, SpawnFailed or RunDirUnusable if nothing could run, and for Ctrl-C
    AgentInterrupted, which carries the run.
    """
    _check_workdir(request.workdir)
    with closing(create_run_outputs(request.run_dir, mode=request.output_mode)) as outputs:
        # A clock before 1970 counts as 1970: no node and no commit can have an earlier time. It may
        # be set meanwhile, so another one measures the duration.
        started_ms, begun_s = max(0, time.time_ns() // 1_000_000), time.monotonic()
        child, outcome = _follow(_Watch(request, outputs, listener))
        debug("CXNQWER0", "agent ended", outcome=outcome, status=child.returncode)
        if child.returncode == _NO_PID_FILE and find_run_start_ms(request.run_dir) is None:
            raise RunDirUnusable(request.run_dir, f"the file {PID} could not be written")
        exit_code = child.returncode if child.returncode >= 0 else None
        if exit_code is not None:
            keep_exit_code(Path(request.run_dir), exit_code)
        run = AgentRun(
            outcome=outcome,
            exit_code=exit_code,
            stdout=outputs.stdout.read(0, request.max_output_bytes),
            stderr=outputs.stderr.read_tail(request.max_log_bytes),
            started_ms=started_ms,
            duration_ms=int((time.monotonic() - begun_s) * 1000),
            left_running=name_left(child.pid) if outcome == "exited" and exit_code == 0 else (),
        )
    if outcome == "interrupted":
        raise AgentInterrupted(run)
    return run


def _follow(watch: "_Watch") -> tuple["subprocess.Popen[bytes]", RunOutcome]:
    """Start the process and watch it until it has ended, or end it."""
    child: subprocess.Popen[bytes] | None = None
    noted: list[int] = []
    with ExitStack() as stack:
        try:
            # Ctrl-C before we know the process would leave it running alone.
            with deferred_signals(noted):
                child, ended = stack.enter_context(
                    watched(partial(_start, watch.request, watch.outputs))
                )
            outcome = _watch_until_ended(child, ended, watch, noted)
        except KeyboardInterrupt:
            if child is None:
                raise
            outcome = "interrupted"
            with suppress(KeyboardInterrupt):
                stop_group(child, grace_s=watch.request.grace_s)
        except BaseException:
            if child is not None:
                stop_group(child, grace_s=watch.request.grace_s)
            raise
        if outcome != "exited":
            # Forward the last output; a second Ctrl-C skips this, but keeps the run.
            with suppress(KeyboardInterrupt):
                watch.forward()
    return child, outcome


def _watch_until_ended(
    child: "subprocess.Popen[bytes]", ended: int, watch: "_Watch", noted: list[int]
) -> RunOutcome:
    if noted:
        raise KeyboardInterrupt
    debug("43NSPBK2", "agent begun", program=watch.request.argv[0], group=child.pid)
    outcome = watch.until_ended(ended)
    # The shell was killed by a signal, so the agent's status is lost.
    if outcome == "exited" and child.wait() < 0:
        outcome = "lost"
    if outcome != "exited":
        stop_group(child, grace_s=watch.request.grace_s)
    return outcome


@dataclass(slots=True)
class _Watch:
    """Forwards outputs and checks limits while an agent runs."""

    request: AgentRequest
    outputs: Outputs
    listener: Listener

    def until_ended(self, ended: int) -> RunOutcome:
        deadline = find_deadline(self.request.timeout_s)
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        while not poller.poll(tick_ms(deadline)):
            self.forward(at_most=_CHUNKS_A_TICK)
            self.listener.on_tick()
            check_cancelled()
            if self.listener.is_done():
                return "dismissed"
            logged = self.outputs.stderr.size()
            if self._is_over_limit() or logged > self.request.max_logged_bytes:
                return "too-much-output"
            if time.monotonic() >= deadline:
                return "timed-out"
        self.forward()
        return "too-much-output" if self._is_over_limit() else "exited"

    def forward(self, *, at_most: int | None = None) -> None:
        """Pass new output to the listener, at most *at_most* chunks of each output.

        Of a flood in the log only the newest, or the listener would be busy long after the end.
        """
        limit = self.request.max_output_bytes
        self.outputs.stderr.skip_to_last(limit)
        forward([(self.outputs.stderr, self.listener.on_stderr)], at_most=at_most)
        forward([(self.outputs.stdout, self.listener.on_stdout)], at_most=at_most, limit=limit)

    def _is_over_limit(self) -> bool:
        return self.outputs.stdout.size() > self.request.max_output_bytes


def _start(request: AgentRequest, outputs: Outputs, held: int) -> "subprocess.Popen[bytes]":
    """Start the shell that runs the agent, and that holds the pipe *held*."""
    files = {"pid": PID, "reserved": RESERVED_EXIT, "exit": EXIT, "stderr": STDERR}
    paths = {name: shlex.quote(f"{request.run_dir}/{file}") for name, file in files.items()}
    log = paths.pop("stderr")
    script = _WRAPPER.format(
        **paths, outputs=f">>{log} 2>&1" if request.is_all_log else f"2>>{log}"
    )
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", *request.argv],
            stdin=held,
            stdout=outputs.stdout.descriptor,
            stderr=subprocess.DEVNULL,
            cwd=request.workdir,
            env=dict(request.environment),
            pass_fds=request.kept_fds,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _spawn_failure(request.argv[0], error) from error


def _spawn_failure(program: str, error: OSError | ValueError) -> SpawnFailed:
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return SpawnFailed(
            program,
            "its arguments and environment are longer than the system allows",
            hint="long texts belong in files, or in the context that `uwf thread context` prints",
        )
    problem = error.strerror if isinstance(error, OSError) else None
    return SpawnFailed(program, " ".join((problem or str(error)).lower().split()))


def _check_workdir(workdir: str) -> None:
    if not os.path.isdir(workdir):
        problem = "is not a directory" if os.path.exists(workdir) else "is not there"
        raise WorkdirMissing(workdir, problem)
    if not os.access(workdir, os.X_OK):
        raise WorkdirMissing(workdir, "may not be entered")


# A command that an agent runs, as its tool.

# The shell's stdin is the watchdog's pipe: a line ends the watchdog, end of file (our death) makes
# it kill the group. The command gets /dev/null and does not inherit the pipe. The shell's own
# stderr is a pipe that hangs up when the shell ends; the last line keeps the shell from becoming
# the command by exec, which would hang it up at once.
_TOOL_WRAPPER = """\
exec 3<&0 </dev/null
{ read -r line <&3 || kill -s KILL 0; } >/dev/null 2>&1 &
"$@" 3<&- 2>&1
exit $?
"""

_CHUNK_BYTES = 64 * 1024

# poll(2) takes milliseconds, no more than 24 days of them.
_LONGEST_POLL_S = 24 * 3600

# More than a pipe holds; a daemon that was left behind may print for ever.
_CHUNKS_AFTER_THE_END = 16


class ToolRequest(NamedTuple):
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float | None = None
    max_output_bytes: int = 1024 * 1024
    """How much of the output is kept; the middle of a longer one is dropped."""

    grace_s: float = 2.0
    """Less than an agent's, so that a tool can end before its agent is killed."""


class ToolRun(NamedTuple):
    outcome: Literal["exited", "timed-out"]

    exit_code: int
    """128 + n if signal n ended it."""

    head: bytes
    """stdout and stderr as they came: all, or the first half of what is kept."""

    tail: bytes

    left_out: int
    """How many bytes were dropped between head and tail."""


def run_tool(request: ToolRequest, *, on_output: Callable[[bytes], None]) -> ToolRun:
    """Run a command to its end, passing output to *on_output* as it comes."""
    output = _HeadAndTail(request.max_output_bytes // 2, on_output)
    deadline = find_deadline(request.timeout_s)
    with _watched_tool(request) as (child, printed, ended):
        is_ended = False
        try:
            is_ended = _follow_tool(printed, ended, deadline=deadline, output=output)
        finally:
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
def _watched_tool(request: ToolRequest) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """Start the command; yield its output, and a descriptor that hangs up when it ends."""

    def start(held: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", _TOOL_WRAPPER, "sh", *request.argv],
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


def _follow_tool(printed: int, ended: int, *, deadline: float, output: _HeadAndTail) -> bool:
    """Read output until the command ends; return False if it timed out."""
    poller = select.poll()
    poller.register(printed, select.POLLIN)
    poller.register(ended, 0)
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        events = dict(poller.poll(min(left_s, _LONGEST_POLL_S) * 1000))
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
    chunks = iter(lambda: os.read(printed, _CHUNK_BYTES), b"")
    with suppress(BlockingIOError):
        for chunk in islice(chunks, _CHUNKS_AFTER_THE_END):
            output.add(chunk)
