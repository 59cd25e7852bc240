"""Running an agent: one process group, two files, no pipe that can fill.

Owns: starting, watching and ending the process of one step.
Knows nothing of: threads, roles, what the output means.
Always true: when ``run_agent`` returns or raises, the agent has ended (a daemon that it left
behind on purpose may live on), no thread of ours is left, and what it printed is in its files.
If the engine is killed instead, the agent runs on and the files tell the next engine all
(``spool.look_up``).

How it works: /bin/sh runs the agent and writes its exit status to a file, since a status can
only be told to the parent, which may be dead by then. The shell's stdin is a pipe in which
nobody writes and which the agent does not get: it breaks at the moment the shell ends, so that
waiting costs neither time nor processor, on any system.
"""

import errno
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from uwf_git.agents.group import stop_group
from uwf_git.agents.request import AgentRequest, AgentRun, Listener, OnOutput, Outcome
from uwf_git.agents.spool import EXIT, PID, STDERR, Spool, SpoolFailed, create_spool
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, Refused

# The traps keep the shell alive when the group is asked to stop, so that the status is written;
# unlike ignored signals they are not inherited. No variable is set, since a shell exports those
# that it found in its environment. The status goes to its file in one write, newline and all.
# The shell's own stderr is nobody's: what it says of the agent's end (`Terminated`) would be the
# last word of the log. (Without the parentheses some shells redirect themselves as well.)
_WRAPPER = """\
echo $$ >{pid} || exit 125
trap : TERM INT HUP
(exec "$@" </dev/null 2>>{stderr})
set -- $?
echo $1 >{exit}
exit $1
"""

_NO_PID_FILE = 125

# How often the log is forwarded and the limits are looked at; the end itself is not polled.
_TICK_S = 0.05

_CHUNK_BYTES = 64 * 1024

# A slow terminal must not keep us from the limits for long.
_CHUNKS_A_TICK = 16


class WorkdirMissing(Refused):
    """The directory in which the agent should stand is not there."""

    code = "workdir-missing"

    def __init__(self, workdir: str, problem: str) -> None:
        super().__init__(
            f"the work directory {workdir} {problem}",
            hint="create it, or name another one with --workdir",
            workdir=workdir,
            problem=problem,
        )


class SpawnFailed(AgentFailed):
    """The system would not start the agent."""

    code = "spawn-failed"

    def __init__(self, program: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"cannot start {program}: {problem}", hint=hint, program=program, problem=problem
        )


class AgentInterrupted(KeyboardInterrupt):
    """Ctrl-C came while the agent ran; it has been stopped, and *run* is what it left."""

    def __init__(self, run: AgentRun) -> None:
        super().__init__("the agent was interrupted")
        self.run = run


def read_clock_ms() -> int:
    """Give the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run_agent(
    request: AgentRequest,
    listener: Listener,
    *,
    clock: Callable[[], int] = read_clock_ms,
) -> AgentRun:
    """Run an agent to its end and give what it left.

    What it prints goes to *listener* as it comes, at most as much as the request's limit, in
    pieces that may end in the middle of a character. What *listener* raises ends the agent.

    Raises:
        WorkdirMissing: there is no such directory, or it may not be entered.
        AlreadyBegun, SpoolFailed: the run directory is not a new place to write.
        SpawnFailed: the system refused; nothing has run.
        AgentInterrupted: Ctrl-C; it carries the run.
    """
    _check_workdir(request.workdir)
    with closing(create_spool(request.run_dir)) as spool:
        started_ms = clock()
        with _spawned(request, spool) as (child, ended):
            outcome = _follow(child, ended, _Watch(request, spool, listener))
            debug("CXNQWER0", "agent ended", outcome=outcome, status=child.returncode)
        _check_begun(child, spool)
        run = AgentRun(
            outcome=outcome,
            exit_code=child.returncode if child.returncode >= 0 else None,
            stdout=spool.read_stdout(request.max_output_bytes),
            stderr=spool.read_stderr_tail(),
            started_ms=started_ms,
            duration_ms=max(0, clock() - started_ms),
        )
    if outcome == "interrupted":
        raise AgentInterrupted(run)
    return run


def _follow(child: "subprocess.Popen[bytes]", ended: int, watch: "_Watch") -> Outcome:
    """Stay with the process until it has ended, by itself or by our hand."""
    grace_s = watch.request.grace_s
    try:
        debug("43NSPBK2", "agent begun", program=watch.request.argv[0], group=child.pid)
        outcome = watch.until_ended(ended)
        # The shell only dies of a signal when somebody meant to hit it; what it was waiting for
        # has nobody left to tell its status to.
        if outcome == "exited" and child.wait() < 0:
            outcome = "lost"
        if outcome != "exited":
            stop_group(child, grace_s=grace_s)
    except KeyboardInterrupt:
        outcome = "interrupted"
        with suppress(KeyboardInterrupt):
            stop_group(child, grace_s=grace_s)
    except BaseException:
        stop_group(child, grace_s=grace_s)
        raise
    if outcome != "exited":
        # Its last words. Another Ctrl-C may cost them, and not the run.
        with suppress(KeyboardInterrupt):
            watch.forward()
    return outcome


@dataclass(slots=True)
class _Watch:
    """What has to be looked after while an agent runs: its outputs, its limits."""

    request: AgentRequest
    spool: Spool
    listener: Listener
    heard: "list[_Heard]" = field(init=False)

    def __post_init__(self) -> None:
        limit = self.request.max_output_bytes
        outputs = (
            (self.spool.stderr, self.listener.on_stderr),
            (self.spool.stdout, self.listener.on_stdout),
        )
        self.heard = [_Heard(file, on, limit) for file, on in outputs if on is not None]

    def until_ended(self, ended: int) -> Outcome:
        """Wait for the end, or for a reason to bring it about."""
        timeout_s = self.request.timeout_s
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        while not poller.poll(_tick_ms(deadline)):
            self.forward(at_most=_CHUNKS_A_TICK)
            self.listener.on_tick()
            if self._is_over_limit():
                return "too-much-output"
            if deadline is not None and time.monotonic() >= deadline:
                return "timed-out"
        self.forward()
        return "too-much-output" if self._is_over_limit() else "exited"

    def forward(self, *, at_most: int | None = None) -> None:
        """Pass on what is new, at most so many chunks of each output."""
        for output in self.heard:
            output.forward(at_most)

    def _is_over_limit(self) -> bool:
        limit = self.request.max_output_bytes
        outputs = (self.spool.stdout, self.spool.stderr)
        return any(os.fstat(output).st_size > limit for output in outputs)


@dataclass(slots=True)
class _Heard:
    """An output to which somebody listens."""

    file: int
    listener: OnOutput
    limit: int
    forwarded: int = 0
    """How much of it has been passed on."""

    def forward(self, at_most: int | None) -> None:
        """Pass on what is new, at most so many chunks of it."""
        for chunk in islice(self._new_chunks(), at_most):
            self.listener(chunk)

    def _new_chunks(self) -> Iterator[bytes]:
        size = min(os.fstat(self.file).st_size, self.limit)
        if size < self.forwarded:
            # `echo … >/dev/stderr` truncates the file, where it would write to a terminal.
            self.forwarded = 0
        while self.forwarded < size:
            length = min(_CHUNK_BYTES, size - self.forwarded)
            chunk = os.pread(self.file, length, self.forwarded)
            if not chunk:
                return
            self.forwarded += len(chunk)
            yield chunk


def _tick_ms(deadline: float | None) -> float:
    left_s = _TICK_S if deadline is None else max(0.0, deadline - time.monotonic())
    return min(_TICK_S, left_s) * 1000


@contextmanager
def _spawned(
    request: AgentRequest, spool: Spool
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Start the shell that runs the agent; the number is a file that breaks when it ends."""
    files = {"pid": PID, "exit": EXIT, "stderr": STDERR}
    script = _WRAPPER.format(
        **{name: shlex.quote(str(spool.run_dir / file)) for name, file in files.items()}
    )
    ended, held = os.pipe()
    try:
        try:
            child = subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", *request.argv],
                stdin=held,
                stdout=spool.stdout,
                stderr=subprocess.DEVNULL,
                cwd=request.workdir,
                env=dict(request.environment),
                pass_fds=request.kept_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _spawn_failure(request.argv[0], error) from error
        finally:
            os.close(held)
        yield child, ended
    finally:
        os.close(ended)


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
    path = Path(workdir)
    if not path.exists():
        raise WorkdirMissing(workdir, "is not there")
    if not path.is_dir():
        raise WorkdirMissing(workdir, "is not a directory")
    if not os.access(path, os.X_OK):
        raise WorkdirMissing(workdir, "may not be entered")


def _check_begun(child: "subprocess.Popen[bytes]", spool: Spool) -> None:
    if child.returncode == _NO_PID_FILE and not (spool.run_dir / PID).exists():
        raise SpoolFailed(str(spool.run_dir), f"the file {PID} could not be written")
